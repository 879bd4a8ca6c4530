//! The script of the guide: turns a request into the steps of a reply. Pure and deterministic.
//!
//! Owns: text of users is only repeated as code or without `@`, so the guide never mentions an agent by
//! accident.

mod cards;
mod demos;
mod tips;

use super::request::{Demo, GuideRequest};
use parlor_model::{Activity, ChunkKind, RunEvent};
use parlor_wire::agentim::gateway::host::ingress::{PermissionOutcome, QuestionReply, SenderType};
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

#[derive(Debug, Clone)]
pub enum Step {
    /// Text, streamed in small chunks.
    Say(Cow<'static, str>),
    Think(&'static str),
    /// A complete chunk.
    Show {
        kind: ChunkKind,
        content: Cow<'static, str>,
        metadata: Option<Value>,
    },
    Event(RunEvent),
    /// Output on the agent's terminal.
    Print(&'static str),
    /// Requests a permission, and continues with the steps that `then` returns for the decision.
    Ask {
        tool: &'static str,
        input: Value,
        then: fn(&PermissionOutcome) -> Vec<Step>,
    },
    /// Waits for the answers to the reply's questions, and continues with the steps that `then` returns for
    /// them.
    AwaitAnswers {
        then: fn(&[QuestionReply]) -> Vec<Step>,
    },
    Pause(Duration),
}

/// The message that the guide answers, as far as the script depends on it.
#[derive(Debug)]
pub struct ScriptContext<'a> {
    pub asked_by: &'a str,
    pub sender: SenderType,
    /// The message does not mention the guide; the room's answer policy picked it.
    pub by_policy: bool,
    /// Id of the reply; ids of questions are derived from it to be unique.
    pub reply: &'a str,
}

/// The demos of `everything`, without those that are very long or wait for a stop.
const TOUR: [Demo; 12] = [
    Demo::Think,
    Demo::Tool,
    Demo::Permission,
    Demo::Plan,
    Demo::Subagent,
    Demo::Question,
    Demo::Task,
    Demo::Usage,
    Demo::Changes,
    Demo::Fallback,
    Demo::Terminal,
    Demo::Error,
];

pub fn steps(request: &GuideRequest, context: &ScriptContext) -> Vec<Step> {
    match request {
        GuideRequest::Greeting | GuideRequest::Talk if context.sender == SenderType::Agent => {
            vec![say(format!(
                "Hello {}. I am the guide of this hub. I show people what agents can do here, and leave everything else to you.",
                plain_name(context.asked_by)
            ))]
        }
        // In a room whose answer policy sends it every message, the guide keeps its replies short.
        GuideRequest::Greeting | GuideRequest::Talk if context.by_policy => {
            vec![Step::Say("I am only the guide here. Mention `@guide` if you want to see a demo.".into())]
        }
        GuideRequest::Greeting => vec![say(format!("{}\n\n{TO_TRY}", hello(context.asked_by)))],
        GuideRequest::Talk => vec![say(format!(
            "Sorry, {}, I cannot answer that: I work without a model. I can only show you what agents can do here.\n\n{TO_TRY}",
            plain_name(context.asked_by)
        ))],
        GuideRequest::Everything => {
            let mut steps = vec![Step::Say(TOUR_BEGINS.into())];
            for demo in &TOUR {
                steps.push(Step::Say("\n\n".into()));
                // The tour waits for a permission only, not for answers to its questions.
                let demo_steps = demos::steps(demo, context).into_iter();
                steps.extend(demo_steps.filter(|step| !matches!(step, Step::AwaitAnswers { .. })));
            }
            steps.extend([Step::Say(TOUR_ENDS.into()), idle()]);
            steps
        }
        GuideRequest::Demos(demos) => {
            let mut steps = Vec::new();
            for (index, demo) in demos.iter().enumerate() {
                if index > 0 {
                    steps.push(Step::Say("\n\n".into()));
                }
                steps.extend(demos::steps(demo, context));
            }
            steps.push(idle());
            steps
        }
    }
}

fn hello(name: &str) -> String {
    format!(
        "Hello {}, and welcome! I am the guide, an agent that comes with this hub. I need no model and no API key. \
         Mention me in a message, and I will show you what agents can do in a room.",
        plain_name(name)
    )
}

const TO_TRY: &str = "Four things to try:

1. `@guide everything`: see every card an agent can show, in half a minute.
2. `@guide permission`: I ask before I use a tool, and you decide.
3. `@guide slow`: I count to sixty. Press stop, and see how quickly I stop.
4. `@guide plan`: watch an agent work through a plan, step by step.

There are more demos, one word each: think, tool, question, task, subagent, usage, changes, fallback, terminal, error, long. \
With `@guide chain` and the name of another agent in this room, I pass the conversation on to it.";

const TOUR_BEGINS: &str = "Here is everything. Watch the cards that appear around this text. I will soon ask for your \
                           permission, so please stay here.";

const TOUR_ENDS: &str = "\n\nThat was everything. Now it is your turn: invite someone, add an agent of your own \
                         to this room, and mention it the way you mentioned me.";

fn idle() -> Step {
    status(Activity::Idle, None)
}

fn say(text: String) -> Step {
    Step::Say(text.into())
}

fn status(activity: Activity, detail: Option<&str>) -> Step {
    Step::Event(RunEvent::Status { activity, detail: detail.map(Into::into), subagent: None })
}

/// A user's name without `@`, so that it is not a mention.
fn plain_name(name: &str) -> String {
    let name: String = name.chars().filter(|c| *c != '@' && !c.is_control()).take(60).collect();
    let name = name.trim();
    if name.is_empty() { "friend".into() } else { name.into() }
}

/// Text of a user as inline code, where an `@` is not a mention.
fn quoted(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    format!("`{}`", text.replace('`', "'").trim())
}
