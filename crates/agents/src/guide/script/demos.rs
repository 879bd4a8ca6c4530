//! The steps of each demo, with the texts around its cards.

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

/// Pause that lets users notice a change.
const SHORT_PAUSE: Step = Step::Pause(Duration::from_millis(400));
const SECOND: Step = Step::Pause(Duration::from_secs(1));

pub fn steps(demo: &Demo, context: &ScriptContext) -> Vec<Step> {
    match demo {
        Demo::Think => think(),
        Demo::Tool => tool(),
        Demo::Permission => permission(),
        Demo::Task => task(),
        Demo::Question => vec![
            Step::Event(questions(context.reply)),
            Step::Say(
                "I have two questions for you. Pick an answer, or write your own. This is how an agent asks you \
                 instead of guessing."
                    .into(),
            ),
            Step::AwaitAnswers { then: answered },
        ],
        Demo::Plan => planning(),
        Demo::Subagent => subagent(),
        Demo::Usage => vec![
            Step::Event(usage()),
            Step::Say(
                "This is what an answer may cost: 1,200 tokens in, 340 out, about half a cent. I made these numbers \
                 up, because I am free. Agents with a model report real numbers, and every agent has a daily \
                 budget, which limits the cost of a mistake."
                    .into(),
            ),
        ],
        Demo::Changes => vec![
            Step::Event(changes()),
            Step::Show {
                kind: ChunkKind::WorkspaceStatus,
                content: workspace().to_string().into(),
                metadata: Some(json!({ "workingDirectory": "/pretend/tea-time" })),
            },
            Step::Say(
                "Two files changed, and the report shows the removed and the added lines. These are pretend files: \
                 nothing on disk was changed."
                    .into(),
            ),
        ],
        Demo::Fallback => vec![
            Step::Event(RunEvent::ModelFallback {
                preferred: "big-model".into(),
                actual: "small-model".into(),
                reason: "rate_limited".into(),
            }),
            Step::Say(
                "My pretend big model was busy, so a smaller one took over, and you were notified. You always know \
                 which model really answers."
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
                "That was an error, on purpose. When an agent fails, everyone in the room sees the error, and \
                 everything that it wrote before is kept."
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
            "Which agent should I pass the conversation on to? Write `@guide chain` and then the name of another agent in this room.".into(),
        )],
    }
}

fn answered(replies: &[QuestionReply]) -> Vec<Step> {
    let text = |answer: &QuestionReply| {
        let chosen = answer.selected.iter().chain(&answer.custom_text).map(|text| quoted(text));
        chosen.collect::<Vec<_>>().join(" and ")
    };
    let answers: Vec<String> = replies.iter().map(text).collect();
    if answers.is_empty() {
        return vec![Step::Say("\n\nNobody answered, so I will bring water, the fern's favourite.".into())];
    }
    vec![say(format!("\n\nYou said {}. It is on its way.", answers.join(", then ")))]
}

fn think() -> Vec<Step> {
    vec![
        status(Activity::ModelLoading, Some("Looking for the model that I do not have")),
        SHORT_PAUSE,
        status(Activity::Thinking, None),
        Step::Think(
            "Someone wants to see me think. These thoughts were written in advance, but an agent with a model does the \
             same: What is the question? What do I know? What should I look up before I answer?",
        ),
        status(Activity::Working, None),
        Step::Say(
            "That was me thinking. An agent's thoughts are folded above its answer. Open them to see how it got there."
                .into(),
        ),
    ]
}

fn tool() -> Vec<Step> {
    let progress = |line: &str, stream| {
        Step::Event(RunEvent::ToolProgress { tool: "Weather".into(), line: line.into(), stream })
    };
    vec![
        status(Activity::CallingTool, Some("Looking out of the window")),
        used("Weather", json!({ "place": "outside the window" })),
        progress("opening the curtains", Stream::Stdout),
        SHORT_PAUSE,
        progress("the left curtain is stuck", Stream::Stderr),
        SHORT_PAUSE,
        progress("looking up", Stream::Stdout),
        returned("Weather", "Sunny, 21 °C, as always in here.", false),
        status(Activity::Working, None),
        Step::Say(
            "I used a pretend tool. The card shows its input, what it printed while it ran, and its result."
                .into(),
        ),
    ]
}

const FERN: &str = "WaterPlant";

fn permission() -> Vec<Step> {
    let input = json!({ "plant": "the fern by the window", "millilitres": 200 });
    vec![
        Step::Say(
            "I would like to water the fern, so I ask for permission. The card shows exactly what I want to do. Allow \
             it or deny it. If nobody answers within two minutes, it is denied.\n\n"
                .into(),
        ),
        used(FERN, input.clone()),
        Step::Ask { tool: FERN, input, then: decided },
    ]
}

fn decided(outcome: &PermissionOutcome) -> Vec<Step> {
    match outcome {
        PermissionOutcome::Allowed => vec![
            SHORT_PAUSE,
            returned(FERN, "Watered with 200 ml. The fern says thank you.", false),
            Step::Say(
                "Allowed: I watered the fern (a pretend fern, with pretend water). An agent with a real tool also \
                 waits until you allow it."
                    .into(),
            ),
        ],
        PermissionOutcome::Denied { reason } => {
            let reason = reason.as_deref().map(|reason| format!(" You said: {}.", quoted(reason)));
            vec![
                returned(FERN, "Not allowed.", true),
                say(format!(
                    "Denied: I leave the fern alone.{} You do not have to give a reason, but it helps the agent.",
                    reason.unwrap_or_default()
                )),
            ]
        }
        PermissionOutcome::Expired => vec![
            returned(FERN, "Nobody answered.", true),
            Step::Say(
                "Nobody answered in time, so it was denied: the fern stays dry. Try again with \
                 `@guide permission` whenever you like."
                    .into(),
            ),
        ],
    }
}

fn task() -> Vec<Step> {
    let task = RunEvent::Task {
        title: "Say hello to someone new".into(),
        description: Some("Invite a person or an agent to this room, and greet them by name.".into()),
        assignee: None,
    };
    vec![
        Step::Event(task),
        Step::Say(
            "I added a task to this room's list: say hello to someone new. Anyone here can take it or complete it. \
             Tasks can be assigned to agents too."
                .into(),
        ),
    ]
}

fn planning() -> Vec<Step> {
    use StepState::{Done, InProgress, Pending, Skipped};
    vec![
        Step::Event(plan(PlanState::Planned, [Pending; 4])),
        Step::Say("Here is my plan for a cup of tea. ".into()),
        SHORT_PAUSE,
        Step::Event(plan(PlanState::Approved, [Pending; 4])),
        SHORT_PAUSE,
        Step::Event(plan(PlanState::Executing, [InProgress, Pending, Pending, Pending])),
        Step::Say("The kettle is on. ".into()),
        SECOND,
        Step::Event(plan(PlanState::Executing, [Done, InProgress, Pending, Pending])),
        Step::Say("The leaves are in the pot. ".into()),
        SECOND,
        Step::Event(plan(PlanState::Executing, [Done, Done, InProgress, Pending])),
        Step::Say("Three minutes take one second here. ".into()),
        SECOND,
        Step::Event(plan(PlanState::Completed, [Done, Done, Done, Skipped])),
        Step::Say(
            "Done, without milk: steps can be skipped. A plan stays visible while an agent works, so you always know \
             its progress."
                .into(),
        ),
    ]
}

fn subagent() -> Vec<Step> {
    let scout =
        |change| Step::Event(RunEvent::Subagent(Subagent { id: "scout".into(), parent: None, change }));
    let scout_status = |activity, detail: Option<&str>| {
        Step::Event(RunEvent::Status {
            activity,
            detail: detail.map(Into::into),
            subagent: Some("scout".into()),
        })
    };
    vec![
        Step::Say("I am sending a helper to count the biscuits. ".into()),
        scout(SubagentChange::Spawned { task: "Count the biscuits in the tin".into() }),
        scout_status(Activity::CallingTool, Some("Opening the tin")),
        SECOND,
        scout_status(Activity::Idle, None),
        scout(SubagentChange::Returned {
            outcome: SubagentOutcome::Complete,
            result: Some("There are seven biscuits.".into()),
        }),
        Step::Say(
            "It is back: there are seven. Agents split large jobs like this, and every helper has its own line, so \
             you can see who does what."
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
            "My terminal just brewed two cups of tea, in colour. A terminal shows the output of an agent's programs \
             while they run. Only colours and cursor movements are passed on, nothing that could affect your \
             computer."
                .into(),
        ),
    ]
}

fn long() -> Vec<Step> {
    let mut text = format!("A long answer: {} things worth knowing about this hub.\n", TIPS.len());
    for (index, tip) in TIPS.iter().enumerate() {
        text.push_str(&format!("\n{}. {tip}", index + 1));
    }
    text.push_str(
        "\n\nYou read to the end. Anyone who joined halfway also sees everything from the beginning.",
    );
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
    steps.push(Step::Say("\n\nSixty, and you let me finish. How patient of you!".into()));
    steps
}

/// Chunk for a tool call with its input.
fn used(tool: &str, input: Value) -> Step {
    Step::Show {
        kind: ChunkKind::ToolUse,
        content: input.to_string().into(),
        metadata: Some(tool_metadata(tool)),
    }
}

/// Chunk for the result of a tool call.
fn returned(tool: &str, content: &'static str, is_error: bool) -> Step {
    let mut metadata = tool_metadata(tool);
    metadata["isError"] = is_error.into();
    Step::Show { kind: ChunkKind::ToolResult, content: content.into(), metadata: Some(metadata) }
}

/// Metadata of a tool chunk. Each tool is called once per reply, so the call id is derived from its name.
fn tool_metadata(tool: &str) -> Value {
    json!({ "toolName": tool, "toolId": format!("call-{tool}") })
}
