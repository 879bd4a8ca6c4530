//! Each act by itself: what is said around the cards.

use super::super::request::Demo;
use super::cards::{changes, plan, questions, usage, workspace};
use super::tips::TIPS;
use super::{ScriptContext, Step, quoted, say, status};
use parlor_model::{
    Activity, ChunkKind, PlanState, RunEvent, StepState, Stream, Subagent, SubagentChange, SubagentOutcome,
};
use parlor_wire::agentim::gateway::host::ingress::{PermissionOutcome, QuestionReply};
use serde_json::{Value, json};
use std::time::Duration;

/// Long enough to be seen.
const SHORT_PAUSE: Step = Step::Pause(Duration::from_millis(400));
const SECOND: Step = Step::Pause(Duration::from_secs(1));

pub fn steps(act: &Demo, scene: &ScriptContext) -> Vec<Step> {
    match act {
        Demo::Think => think(),
        Demo::Tool => tool(),
        Demo::Permission => permission(),
        Demo::Task => task(),
        Demo::Question => vec![
            Step::Tell(questions(scene.reply)),
            Step::Say(
                "I have two questions for you. Pick an answer, or write one of your own. Nothing depends on them: \
                 this is how an agent asks when it does not want to guess."
                    .into(),
            ),
            Step::Hear { then: answered },
        ],
        Demo::Plan => planning(),
        Demo::Subagent => subagent(),
        Demo::Usage => vec![
            Step::Tell(usage()),
            Step::Say(
                "This is what an answer may cost: 1,200 tokens in, 340 out, about half a cent. I made the numbers up, \
                 I am free. Agents with a model report real ones, and every agent has a budget for the day, so a \
                 mistake stays a small one."
                    .into(),
            ),
        ],
        Demo::Changes => vec![
            Step::Tell(changes()),
            Step::Show {
                kind: ChunkKind::WorkspaceStatus,
                content: workspace().to_string().into(),
                metadata: Some(json!({ "workingDirectory": "/pretend/tea-time" })),
            },
            Step::Say(
                "Two files changed, and the report shows what went out and what came in. They are pretend files: \
                 nothing on any disk was touched."
                    .into(),
            ),
        ],
        Demo::Fallback => vec![
            Step::Tell(RunEvent::ModelFallback {
                preferred: "big-model".into(),
                actual: "small-model".into(),
                reason: "rate_limited".into(),
            }),
            Step::Say(
                "My pretend big model was busy, so a smaller one took over, and you were told: you always know who really \
                 answers."
                    .into(),
            ),
        ],
        Demo::Error => vec![
            Step::Show {
                kind: ChunkKind::Error,
                content: "The pretend teapot is empty (error 418).".into(),
                metadata: None,
            },
            Step::Say(
                "That was an error, on purpose. An agent that fails says so where everybody sees it, and what it \
                 said before is kept."
                    .into(),
            ),
        ],
        Demo::Terminal => terminal(),
        Demo::Long => long(),
        Demo::Slow => slow(),
        Demo::Chain(Some(name)) => vec![say(format!(
            "Over to you, @{name}: please say hello to this room in one sentence, and tell us what you are good at."
        ))],
        Demo::Chain(None) => vec![Step::Say(
            "Whom shall I hand over to? Write `@guide chain` and then the name of another agent in this room.".into(),
        )],
    }
}

fn answered(said: &[QuestionReply]) -> Vec<Step> {
    let words = |answer: &QuestionReply| {
        let chosen = answer.selected.iter().chain(&answer.custom_text).map(|words| quoted(words));
        chosen.collect::<Vec<_>>().join(" and ")
    };
    let said: Vec<String> = said.iter().map(words).collect();
    if said.is_empty() {
        return vec![Step::Say("\n\nNobody answered, so I bring water, as the fern recommends.".into())];
    }
    vec![say(format!("\n\nYou said {}. It is on its way.", said.join(", then ")))]
}

fn think() -> Vec<Step> {
    vec![
        status(Activity::ModelLoading, Some("Looking for the model that I do not have")),
        SHORT_PAUSE,
        status(Activity::Thinking, None),
        Step::Think(
            "Somebody wants to see me think. These thoughts were written down beforehand, but an agent with a model \
             does the same: What was asked? What do I know? What should I look up before I answer?",
        ),
        status(Activity::Working, None),
        Step::Say(
            "That was me thinking. Thoughts are folded away above the answer; open them when you wonder how an agent \
             got there."
                .into(),
        ),
    ]
}

fn tool() -> Vec<Step> {
    let progress = |line: &str, stream| {
        Step::Tell(RunEvent::ToolProgress { tool: "Weather".into(), line: line.into(), stream })
    };
    vec![
        status(Activity::CallingTool, Some("Looking out of the window")),
        used("Weather", json!({ "place": "outside the window" })),
        progress("opening the curtains", Stream::Stdout),
        SHORT_PAUSE,
        progress("the left curtain is stuck", Stream::Stderr),
        SHORT_PAUSE,
        progress("looking up", Stream::Stdout),
        returned("Weather", "Sunny, 21 °C. In here it always is.", false),
        status(Activity::Working, None),
        Step::Say(
            "I used a pretend tool. The card shows what went in, what it printed on the way, and what came out."
                .into(),
        ),
    ]
}

const FERN: &str = "WaterPlant";

fn permission() -> Vec<Step> {
    let input = json!({ "plant": "the fern by the window", "millilitres": 200 });
    vec![
        Step::Say(
            "I would like to water the fern, and I ask first. The card shows exactly what I want to do: allow it or \
             deny it. If nobody answers within two minutes, that is a no.\n\n"
                .into(),
        ),
        used(FERN, input.clone()),
        Step::Ask { tool: FERN, input, then: decided },
    ]
}

fn decided(verdict: &PermissionOutcome) -> Vec<Step> {
    match verdict {
        PermissionOutcome::Allowed => vec![
            SHORT_PAUSE,
            returned(FERN, "Watered with 200 ml. The fern says thank you.", false),
            Step::Say(
                "Allowed: the fern has its water (a pretend fern, pretend water). An agent with a real tool \
                 goes ahead just like this, and not before."
                    .into(),
            ),
        ],
        PermissionOutcome::Denied { reason } => {
            let why = reason.as_deref().map(|reason| format!(" You said: {}.", quoted(reason)));
            vec![
                returned(FERN, "Not allowed.", true),
                say(format!(
                    "Denied: I leave the fern alone.{} A no needs no reason, but an agent can learn from one.",
                    why.unwrap_or_default()
                )),
            ]
        }
        PermissionOutcome::Expired => vec![
            returned(FERN, "Nobody answered.", true),
            Step::Say(
                "Nobody answered in time, and that is a no: the fern stays dry. Ask me again with \
                 `@guide permission` whenever you like."
                    .into(),
            ),
        ],
    }
}

fn task() -> Vec<Step> {
    let task = RunEvent::Task {
        title: "Say hello to somebody new".into(),
        description: Some("Invite a person or an agent to this room, and greet them by name.".into()),
        assignee: None,
    };
    vec![
        Step::Tell(task),
        Step::Say(
            "I put a task on this room's list: say hello to somebody new. Anyone here can take it or tick it off, \
             and tasks can be given to agents too."
                .into(),
        ),
    ]
}

fn planning() -> Vec<Step> {
    use StepState::{Done, InProgress, Pending, Skipped};
    vec![
        Step::Tell(plan(PlanState::Planned, [Pending; 4])),
        Step::Say("Here is my plan for a cup of tea. ".into()),
        SHORT_PAUSE,
        Step::Tell(plan(PlanState::Approved, [Pending; 4])),
        SHORT_PAUSE,
        Step::Tell(plan(PlanState::Executing, [InProgress, Pending, Pending, Pending])),
        Step::Say("The kettle is on. ".into()),
        SECOND,
        Step::Tell(plan(PlanState::Executing, [Done, InProgress, Pending, Pending])),
        Step::Say("The leaves are in the pot. ".into()),
        SECOND,
        Step::Tell(plan(PlanState::Executing, [Done, Done, InProgress, Pending])),
        Step::Say("Three minutes are one second here. ".into()),
        SECOND,
        Step::Tell(plan(PlanState::Completed, [Done, Done, Done, Skipped])),
        Step::Say(
            "Done, and no milk, thank you: steps can be skipped. A plan stays in sight while an agent works, so you \
             always know how far it is."
                .into(),
        ),
    ]
}

fn subagent() -> Vec<Step> {
    let scout =
        |change| Step::Tell(RunEvent::Subagent(Subagent { id: "scout".into(), parent: None, change }));
    let doing = |activity, detail: Option<&str>| {
        Step::Tell(RunEvent::Status {
            activity,
            detail: detail.map(Into::into),
            subagent: Some("scout".into()),
        })
    };
    vec![
        Step::Say("I send a helper ahead to count the biscuits. ".into()),
        scout(SubagentChange::Spawned { task: "Count the biscuits in the tin".into() }),
        doing(Activity::CallingTool, Some("Opening the tin")),
        SECOND,
        doing(Activity::Idle, None),
        scout(SubagentChange::Returned {
            outcome: SubagentOutcome::Complete,
            result: Some("There are seven biscuits.".into()),
        }),
        Step::Say(
            "It is back: seven. Agents split large jobs like this, and every helper has a line of its own, so you see \
             who does what."
                .into(),
        ),
    ]
}

fn terminal() -> Vec<Step> {
    vec![
        Step::Print("$ brew tea --cups 2\r\n"),
        SHORT_PAUSE,
        Step::Print("\u{1b}[33mheating\u{1b}[0m  40 %\r"),
        SHORT_PAUSE,
        Step::Print("\u{1b}[33mheating\u{1b}[0m  80 %\r"),
        SHORT_PAUSE,
        Step::Print("\u{1b}[32mready\u{1b}[0m   100 %\r\n"),
        Step::Say(
            "My terminal just brewed two cups of tea, in colour. It shows what an agent's programs print while they \
             run; only colours and cursor moves come through, nothing that could act on your side."
                .into(),
        ),
    ]
}

fn long() -> Vec<Step> {
    let mut text = format!("A long answer: {} things worth knowing about this hub.\n", TIPS.len());
    for (index, tip) in TIPS.iter().enumerate() {
        text.push_str(&format!("\n{}. {tip}", index + 1));
    }
    text.push_str("\n\nYou read to the end. Who joined halfway saw everything from the beginning, too.");
    vec![say(text)]
}

fn slow() -> Vec<Step> {
    let mut steps = vec![Step::Say(
        "I count to sixty, one number each second. Stop me when you have seen enough.\n\n".into(),
    )];
    for number in 1..=60 {
        steps.push(SECOND);
        steps.push(say(format!("{number} ")));
    }
    steps.push(Step::Say("\n\nSixty, and you let me finish. How patient you are!".into()));
    steps
}

/// A tool is called: what went in.
fn used(tool: &str, input: Value) -> Step {
    Step::Show { kind: ChunkKind::ToolUse, content: input.to_string().into(), metadata: Some(of_tool(tool)) }
}

/// A tool has answered: what came out.
fn returned(tool: &str, content: &'static str, is_error: bool) -> Step {
    let mut metadata = of_tool(tool);
    metadata["isError"] = is_error.into();
    Step::Show { kind: ChunkKind::ToolResult, content: content.into(), metadata: Some(metadata) }
}

/// Each tool is called once in a reply, so its name tells its call.
fn of_tool(tool: &str) -> Value {
    json!({ "toolName": tool, "toolId": format!("call-{tool}") })
}
