//! Run events: structured reports of an agent during a run, such as plans, questions, usage and file changes.
//!
//! Clients show them live as cards. Gateways send them as separate frames; they are never parsed from reply
//! text.
//!
//! The store keeps plans, questions and answers in their serde encoding: another name of a field or a variant
//! needs a migration.

use crate::Usage;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEvent {
    /// The complete current plan.
    Plan(Plan),
    Questions(Questions),
    Usage(UsageReport),
    Subagent(Subagent),
    Changes(ChangeReport),
    /// A line of output of a tool.
    ToolProgress {
        tool: Box<str>,
        line: Box<str>,
        stream: Stream,
    },
    /// The agent uses another model than the preferred one.
    ModelFallback {
        preferred: Box<str>,
        actual: Box<str>,
        reason: Box<str>,
    },
    /// Request to add a task to the room.
    Task {
        title: Box<str>,
        description: Option<Box<str>>,
        /// Name or id of a member of the room.
        assignee: Option<Box<str>>,
    },
    Status {
        activity: Activity,
        /// Detail of the activity, such as the file being read.
        detail: Option<Box<str>>,
        /// Subagent that performs the activity; `None` for the agent itself.
        subagent: Option<Box<str>>,
    },
}

/// Defines enums whose variants have fixed string forms, the same in every protocol.
macro_rules! string_enums {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name {
            $($variant),+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }
    )+};
}

string_enums! {
    PlanState {
        Planned = "planned",
        Approved = "approved",
        Rejected = "rejected",
        Executing = "executing",
        Completed = "completed",
    }
    StepState { Pending = "pending", InProgress = "in_progress", Done = "done", Skipped = "skipped" }
    SubagentOutcome { Complete = "complete", Failed = "failed", Cancelled = "cancelled" }
    /// Output stream of a tool.
    Stream { Stdout = "stdout", Stderr = "stderr" }
    /// Current activity of an agent. Activities may follow each other in any order.
    Activity {
        ModelLoading = "model_loading",
        Thinking = "thinking",
        CallingTool = "calling_tool",
        Working = "working",
        Idle = "idle",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub summary: Box<str>,
    pub state: PlanState,
    pub steps: Vec<PlanStep>,
    /// The plan in full, as Markdown.
    pub text: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    pub state: StepState,
}

/// Set of one to four questions to users, asked and answered together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// Id of the question set, chosen by the gateway.
    pub id: Box<str>,
    pub questions: Vec<Question>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub text: Box<str>,
    /// Short label of one or two words.
    pub header: Box<str>,
    /// Two to four options. A free-text answer is always possible as well.
    pub options: Vec<Choice>,
    /// Whether several options may be selected.
    pub several: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub label: Box<str>,
    pub description: Option<Box<str>>,
    pub preview: Option<Box<str>>,
}

/// Answer of a user to one question of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// Index of the question in its set.
    pub question: usize,
    /// Labels of the selected options.
    pub selected: Vec<Box<str>>,
    /// Free text, instead of options or in addition to them.
    pub text: Option<Box<str>>,
}

impl RunEvent {
    /// Returns the bytes of all texts of the event.
    pub fn length(&self) -> usize {
        match self {
            Self::Plan(plan) => plan.length(),
            Self::Questions(questions) => questions.questions.iter().map(Question::length).sum(),
            Self::Usage(_) => 0,
            Self::Subagent(subagent) => match &subagent.change {
                SubagentChange::Spawned { task } => task.len(),
                SubagentChange::Returned { result, .. } => optional(result),
            },
            Self::Changes(report) => {
                let file = |file: &ChangedFile| file.path.len() + file.summary.len() + optional(&file.diff);
                report.files.iter().map(file).sum()
            }
            Self::ToolProgress { tool, line, .. } => tool.len() + line.len(),
            Self::ModelFallback { preferred, actual, reason } => {
                preferred.len() + actual.len() + reason.len()
            }
            Self::Task { title, description, assignee } => {
                title.len() + optional(description) + optional(assignee)
            }
            Self::Status { detail, subagent, .. } => optional(detail) + optional(subagent),
        }
    }
}

impl Plan {
    /// Returns the bytes of all texts of the plan.
    pub fn length(&self) -> usize {
        let steps = self.steps.iter().map(|step| step.title.len() + optional(&step.description));
        self.summary.len() + optional(&self.text) + steps.sum::<usize>()
    }
}

impl Question {
    /// Returns the bytes of all texts of the question and its options.
    pub fn length(&self) -> usize {
        let option =
            |choice: &Choice| choice.label.len() + optional(&choice.description) + optional(&choice.preview);
        self.text.len() + self.header.len() + self.options.iter().map(option).sum::<usize>()
    }
}

impl QuestionAnswer {
    /// Returns the bytes of all texts of the answer.
    pub fn length(&self) -> usize {
        optional(&self.text) + self.selected.iter().map(|label| label.len()).sum::<usize>()
    }
}

fn optional(text: &Option<Box<str>>) -> usize {
    text.as_ref().map_or(0, |text| text.len())
}

/// Usage of a run so far. At least one of the two fields is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReport {
    /// Total of the run so far, not a difference, so that a lost or repeated report does no harm.
    pub spent: Option<Usage>,
    pub context: Option<ContextUsage>,
}

/// Usage of the model's context window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    /// Point within a step at which it was measured, such as `pre`.
    pub stage: Box<str>,
    pub messages: u64,
    pub characters: u64,
    pub estimated_tokens: u64,
    pub token_limit: Option<u64>,
    /// Prompt tokens as counted by the model in its last response.
    pub prompt_tokens: Option<u64>,
    /// Completion tokens as counted by the model in its last response.
    pub completion_tokens: Option<u64>,
    pub compressed: bool,
    pub summaries: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    pub id: Box<str>,
    /// Subagent that started this subagent; `None` if the agent itself did.
    pub parent: Option<Box<str>>,
    pub change: SubagentChange,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubagentChange {
    Spawned { task: Box<str> },
    Returned { outcome: SubagentOutcome, result: Option<Box<str>> },
}

/// Files that a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReport {
    pub files: Vec<ChangedFile>,
    /// Number of further changed files that are not listed.
    pub left_out: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    pub path: Box<str>,
    pub summary: Box<str>,
    pub diff: Option<Box<str>>,
}
