//! Messages about runs: outcome, plan, usage, subagents, activities and streamed replies. Encodes the run events of the
//! model.

use crate::events::frames::{Subject, UiMessage};
use crate::words::mirror_enum;
use parlor_model::run_event::{ChangeReport, Subagent, SubagentChange, UsageReport};
use parlor_model::{RunEvent, RunId};
use serde::Serialize;
use serde_json::Value;
#[cfg(test)]
use ts_rs::TS;

mirror_enum!(
    PlanStatus,
    "snake_case",
    run_event::PlanState { Planned, Approved, Rejected, Executing, Completed }
);
mirror_enum!(StepStatus, "snake_case", run_event::StepState { Pending, InProgress, Done, Skipped });
mirror_enum!(SubagentStatus, "snake_case", run_event::SubagentOutcome { Complete, Failed, Cancelled });
mirror_enum!(OutputStream, "snake_case", run_event::Stream { Stdout, Stderr });
mirror_enum!(
    ActivityStatus,
    "snake_case",
    run_event::Activity { ModelLoading, Thinking, CallingTool, Working, Idle }
);

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ResyncData<'a> {
    pub reason: &'a str,
    /// Number of lost messages, if known.
    pub lagged_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub position: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct RunOutcomeData<'a> {
    pub outcome: RunResult<'a>,
    pub run_id: &'a str,
    /// Message that triggered the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct RunResult<'a> {
    /// Always `none`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `completed`, `failed`, `cancelled`, `interrupted` or `refused`.
    pub status: &'static str,
    /// Whether the run was started.
    pub handled: bool,
    /// Reason of a refused or failed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct PlanUpdateData<'a> {
    pub plan: PlanData<'a>,
    pub run_id: &'a str,
}

/// A plan, also in the answer to `GET /api/plan`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct PlanData<'a> {
    pub summary: &'a str,
    pub items: Vec<PlanItem<'a>>,
    pub status: PlanStatus,
    pub plan_text: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct PlanItem<'a> {
    pub title: &'a str,
    pub description: Option<&'a str>,
    pub status: StepStatus,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ContextUsageData<'a> {
    pub stage: &'a str,
    pub message_count: Option<u64>,
    pub char_count: Option<u64>,
    pub estimated_tokens: Option<u64>,
    pub token_limit: Option<u64>,
    pub actual_prompt_tokens: Option<u64>,
    pub actual_completion_tokens: Option<u64>,
    /// Cost of the run so far, in millionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub cost_micros: Option<u64>,
    pub compressed: bool,
    pub summary_count: u64,
    pub run_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SubagentSpawnedData<'a> {
    pub subagent_id: &'a str,
    pub task: &'a str,
    /// Subagent that started this subagent; `null` if the agent itself did.
    pub parent_id: Option<&'a str>,
    pub run_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SubagentResultData<'a> {
    pub subagent_id: &'a str,
    pub outcome: SubagentResult<'a>,
    pub parent_id: Option<&'a str>,
    pub run_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct SubagentResult<'a> {
    /// Always `none`; the result is in `status`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub status: SubagentStatus,
    pub result: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ChangeReportData<'a> {
    pub files: Vec<ChangedFileData<'a>>,
    /// Number of further changed files that are not listed.
    pub truncated_count: u32,
    pub run_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ChangedFileData<'a> {
    pub path: &'a str,
    pub summary: &'a str,
    pub diff: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct TurnCompleteData<'a> {
    pub run_id: &'a str,
    pub duration_ms: i64,
    /// Input and output tokens of the run together.
    pub context_tokens: Option<u64>,
    pub parent_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ActivityData<'a> {
    pub status: ActivityStatus,
    pub run_id: &'a str,
    /// Subagent that performs the activity; `null` for the agent itself.
    pub parent_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct IdlePromptData<'a> {
    #[cfg_attr(test, ts(type = "\"idle_prompt_triggered\""))]
    pub status: &'static str,
    pub mission_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ToolProgressData<'a> {
    pub tool: &'a str,
    pub line: &'a str,
    pub stream: OutputStream,
    pub run_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ModelFallbackData<'a> {
    pub preferred_model: &'a str,
    pub actual_model: &'a str,
    pub reason: &'a str,
    pub run_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct TokenData<'a> {
    pub message_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// The token starts at the beginning of the reply. A client that already has part of the reply discards it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<bool>,
}

/// Run and message of a complete reply.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ReplyData<'a> {
    pub run_id: &'a str,
    pub message_id: &'a str,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct BlockStartData<'a> {
    pub block_id: String,
    pub message_id: &'a str,
    pub block_type: &'static str,
    /// Name of the tool as the gateway reported it.
    #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
    pub tool: Value,
    pub args: &'a str,
    /// Always `null`.
    pub parent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, as = "Option<crate::typescript::Unknown>"))]
    pub metadata: Option<Value>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct BlockUpdateData<'a> {
    pub block_id: String,
    pub message_id: &'a str,
    /// `done` or `failed`.
    pub status: &'static str,
    pub summary: &'a str,
    pub is_error: bool,
    /// Always `null`.
    pub parent_id: Option<&'a str>,
}

/// Encodes a run event; `None` if it is published as an event of the hub or as another signal.
pub fn message<'a>(run: &'a RunId, event: &'a RunEvent, number: u64, rev: u64) -> Option<UiMessage<'a>> {
    let unique_id = |name: &str| format!("{name}-{run}-{number}");
    let run_id = run.as_str();
    Some(match event {
        RunEvent::Usage(usage) => {
            let subject = Subject::ContextUsage(context(usage, run_id));
            UiMessage::new(format!("run-context-{run}"), subject).rev(rev)
        }
        RunEvent::Subagent(Subagent { id, parent, change }) => {
            let (subagent_id, parent_id) = (&**id, parent.as_deref());
            match change {
                SubagentChange::Spawned { task } => {
                    let data = SubagentSpawnedData { subagent_id, task, parent_id, run_id };
                    UiMessage::new(unique_id("run-subagent-spawned"), Subject::SubagentSpawned(data))
                        .text(format!("Spawned subagent {id}"))
                }
                SubagentChange::Returned { outcome, result } => {
                    let result = result.as_deref();
                    let outcome = SubagentResult { kind: "none", status: (*outcome).into(), result };
                    let data = SubagentResultData { subagent_id, outcome, parent_id, run_id };
                    UiMessage::new(unique_id("run-subagent-result"), Subject::SubagentResult(data))
                        .text(format!("Subagent {id} returned"))
                }
            }
        }
        RunEvent::Changes(ChangeReport { files, left_out }) => {
            let files = files.iter().map(|file| ChangedFileData {
                path: &file.path,
                summary: &file.summary,
                diff: file.diff.as_deref(),
            });
            let data = ChangeReportData { files: files.collect(), truncated_count: *left_out, run_id };
            let message = UiMessage::new(format!("run-change-report-{run}"), Subject::ChangeReport(data));
            message.rev(rev).text("Change report")
        }
        RunEvent::ToolProgress { tool, line, stream } => {
            let data = ToolProgressData { tool, line, stream: (*stream).into(), run_id };
            UiMessage::new(unique_id("tool-progress"), Subject::ToolProgress(data)).text(&**line)
        }
        RunEvent::ModelFallback { preferred, actual, reason } => {
            let data = ModelFallbackData { preferred_model: preferred, actual_model: actual, reason, run_id };
            UiMessage::new(unique_id("model-fallback"), Subject::ModelFallback(data))
                .text(format!("Using {actual} model ({preferred} unavailable: {reason})"))
        }
        // Plans, tasks and question sets are published as events, activities as a separate signal.
        RunEvent::Plan(_) | RunEvent::Task { .. } | RunEvent::Questions(_) | RunEvent::Status { .. } => {
            return None;
        }
    })
}

fn context<'a>(usage: &'a UsageReport, run_id: &'a str) -> ContextUsageData<'a> {
    let (spent, context) = (usage.spent.as_ref(), usage.context.as_ref());
    let prompt_tokens = context.and_then(|context| context.prompt_tokens);
    let completion_tokens = context.and_then(|context| context.completion_tokens);
    ContextUsageData {
        stage: context.map_or("post", |context| &context.stage),
        message_count: context.map(|context| context.messages),
        char_count: context.map(|context| context.characters),
        estimated_tokens: context.map(|context| context.estimated_tokens),
        token_limit: context.and_then(|context| context.token_limit),
        actual_prompt_tokens: prompt_tokens.or(spent.map(|spent| spent.input_tokens)),
        actual_completion_tokens: completion_tokens.or(spent.map(|spent| spent.output_tokens)),
        cost_micros: spent.and_then(|spent| spent.cost),
        compressed: context.is_some_and(|context| context.compressed),
        summary_count: context.map_or(0, |context| context.summaries),
        run_id,
    }
}
