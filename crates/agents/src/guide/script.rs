//! What the guide says and shows: from a wish to steps. Pure, and the same every time.
//!
//! Text of others that is repeated stands in code or without `@`: the guide never calls somebody by accident.

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
    /// Streamed in small pieces.
    Say(Cow<'static, str>),
    Think(&'static str),
    /// Comes whole.
    Show {
        kind: ChunkKind,
        content: Cow<'static, str>,
        metadata: Option<Value>,
    },
    Tell(RunEvent),
    /// On the agent's terminal.
    Print(&'static str),
    /// Waits for people, and goes on with what follows from their answer.
    Ask {
        tool: &'static str,
        input: Value,
        then: fn(&PermissionOutcome) -> Vec<Step>,
    },
    /// Waits for what people say to its questions, and goes on with what follows from it.
    Hear {
        then: fn(&[QuestionReply]) -> Vec<Step>,
    },
    Pause(Duration),
}

/// For whom it is, and where.
#[derive(Debug)]
pub struct ScriptContext<'a> {
    pub asked_by: &'a str,
    pub sender: SenderType,
    /// Nobody named the guide: the room wants it to hear everything.
    pub by_policy: bool,
    /// Different for each reply, so that what is named after it is too.
    pub reply: &'a str,
}

/// What belongs into a tour: what waits for a stop, or speaks for long, is shown on its own.
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

pub fn steps(wish: &GuideRequest, scene: &ScriptContext) -> Vec<Step> {
    match wish {
        GuideRequest::Greeting | GuideRequest::Talk if scene.sender == SenderType::Agent => {
            vec![say(format!(
                "Hello {}. I am the guide of this hub: I show people what agents can do here, and leave the rest to you.",
                plain_name(scene.asked_by)
            ))]
        }
        // In a room where it hears everything, it must not fill it with what it could do.
        GuideRequest::Greeting | GuideRequest::Talk if scene.by_policy => {
            vec![Step::Say("I am only the guide here: write `@guide` when you want to see something.".into())]
        }
        GuideRequest::Greeting => vec![say(format!("{}\n\n{TO_TRY}", hello(scene.asked_by)))],
        GuideRequest::Talk => vec![say(format!(
            "I read that, {}, but I have no model, so I cannot answer it: I only show what agents can do here.\n\n{TO_TRY}",
            plain_name(scene.asked_by)
        ))],
        GuideRequest::Everything => {
            let mut steps = vec![Step::Say(TOUR_BEGINS.into())];
            for act in &TOUR {
                steps.push(Step::Say("\n\n".into()));
                // A tour waits once, for a permission.
                let shown = demos::steps(act, scene).into_iter();
                steps.extend(shown.filter(|step| !matches!(step, Step::Hear { .. })));
            }
            steps.extend([Step::Say(TOUR_ENDS.into()), idle()]);
            steps
        }
        GuideRequest::Acts(acts) => {
            let mut steps = Vec::new();
            for (index, act) in acts.iter().enumerate() {
                if index > 0 {
                    steps.push(Step::Say("\n\n".into()));
                }
                steps.extend(demos::steps(act, scene));
            }
            steps.push(idle());
            steps
        }
    }
}

fn hello(name: &str) -> String {
    format!(
        "Hello {}, and welcome! I am the guide. I live in this hub, I need no model and no key, and I show you what \
         agents can do in a room: mention me, and I answer.",
        plain_name(name)
    )
}

const TO_TRY: &str = "Four things to try:

1. `@guide everything`: every card an agent can show you, in half a minute.
2. `@guide permission`: I ask before I use a tool, and you decide.
3. `@guide slow`: I count to sixty. Stop me, and see how quickly I am quiet.
4. `@guide plan`: watch an agent tick off its work.

There is more, one word each: think, tool, question, task, subagent, usage, changes, fallback, terminal, error, long. \
With `@guide chain` and the name of another agent in this room, I hand over to it.";

const TOUR_BEGINS: &str = "Everything, then. Watch what appears around this text; soon I will ask your permission \
                           for something, so stay close.";

const TOUR_ENDS: &str = "\n\nThat was everything. Now it is your turn: invite somebody, bring an agent of your own \
                         into this room, and mention it the way you mentioned me.";

fn idle() -> Step {
    status(Activity::Idle, None)
}

fn say(text: String) -> Step {
    Step::Say(text.into())
}

fn status(activity: Activity, detail: Option<&str>) -> Step {
    Step::Tell(RunEvent::Status { activity, detail: detail.map(Into::into), subagent: None })
}

/// A name that calls nobody.
fn plain_name(name: &str) -> String {
    let name: String = name.chars().filter(|c| *c != '@' && !c.is_control()).take(60).collect();
    let name = name.trim();
    if name.is_empty() { "friend".into() } else { name.into() }
}

/// Words of others, in code, where they call nobody.
fn quoted(words: &str) -> String {
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    format!("`{}`", words.replace('`', "'").trim())
}
