//! What an agent tells of its turn beside what it says in it: plans, questions, what it costs, what it changed.
//!
//! Shown live and drawn as cards; never read out of an agent's text.

use crate::Usage;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The plan as it stands now, whole.
    Plan(Plan),
    Questions(Questions),
    Usage(UsageReport),
    Subagent(Subagent),
    Changes(ChangeReport),
    /// A line that a tool printed.
    ToolProgress {
        tool: Box<str>,
        line: Box<str>,
        stream: Stream,
    },
    /// Another model answers than the one that was wanted.
    ModelFallback {
        preferred: Box<str>,
        actual: Box<str>,
        reason: Box<str>,
    },
    /// Something to be done, which the agent wants on the room's list.
    Task {
        title: Box<str>,
        description: Option<Box<str>>,
        /// A member of the room, by name or id.
        assignee: Option<Box<str>>,
    },
    Status {
        activity: Activity,
        /// Such as the file being read.
        detail: Option<Box<str>>,
        /// Whose it is, if not the agent's own.
        subagent: Option<Box<str>>,
    },
}

/// States that have one word each, the same through every door.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($variant),+
        }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text)
            }
        }
    )+};
}

words! {
    PlanState {
        Planned = "planned",
        Approved = "approved",
        Rejected = "rejected",
        Executing = "executing",
        Completed = "completed",
    }
    StepState { Pending = "pending", InProgress = "in_progress", Done = "done", Skipped = "skipped" }
    SubagentOutcome { Complete = "complete", Failed = "failed", Cancelled = "cancelled" }
    /// Where a tool printed.
    Stream { Stdout = "stdout", Stderr = "stderr" }
    /// What an agent is at, in whatever order it really goes.
    Activity {
        ModelLoading = "model_loading",
        Thinking = "thinking",
        CallingTool = "calling_tool",
        Working = "working",
        Idle = "idle",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub summary: Box<str>,
    pub state: PlanState,
    pub steps: Vec<PlanStep>,
    /// The plan in full, as Markdown.
    pub text: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    pub title: Box<str>,
    pub description: Option<Box<str>>,
    pub state: StepState,
}

/// One to four questions to people, asked and answered together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// What the agent's own side calls them.
    pub id: Box<str>,
    pub questions: Vec<Question>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub text: Box<str>,
    /// A word or two to know it by.
    pub header: Box<str>,
    /// Two to four; an answer in one's own words is always possible too.
    pub options: Vec<Choice>,
    pub several: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub label: Box<str>,
    pub description: Option<Box<str>>,
    pub preview: Option<Box<str>>,
}

/// At least one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageReport {
    /// Of the whole turn until now, so that a report that is lost or repeated does no harm.
    pub spent: Option<Usage>,
    pub context: Option<ContextUsage>,
}

/// How full the model's window is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextUsage {
    /// At which point of a step it was taken, such as `pre`.
    pub stage: Box<str>,
    pub messages: u64,
    pub characters: u64,
    pub estimated_tokens: u64,
    pub token_limit: Option<u64>,
    /// As the model itself counted them in its last answer.
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    pub compressed: bool,
    pub summaries: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subagent {
    pub id: Box<str>,
    /// The subagent that called it, if it was not the agent itself.
    pub parent: Option<Box<str>>,
    pub change: SubagentChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubagentChange {
    Spawned { task: Box<str> },
    Returned { outcome: SubagentOutcome, result: Option<Box<str>> },
}

/// The files that a turn changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeReport {
    pub files: Vec<ChangedFile>,
    /// How many more there were.
    pub left_out: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: Box<str>,
    pub summary: Box<str>,
    pub diff: Option<Box<str>>,
}
