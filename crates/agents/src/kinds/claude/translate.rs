//! Translates the frames of the Claude CLI to chunks and run events. Pure: its only state is that of the
//! current run.

use super::super::tools::{self, line};
use super::frames::{FullMessage, ResultFrame, StreamEvent, System, blocks};
use parlor_model::{
    Activity, Chunk, ChunkKind, ContextUsage, RunEvent, StepState, Stream, Subagent, SubagentChange,
    SubagentOutcome, UsageReport,
};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Model name of messages that the CLI creates itself; they mostly repeat its result and are skipped.
const SYNTHETIC_MODEL: &str = "<synthetic>";
/// Maximum characters of a tool name, a model name or an id.
const MAX_NAME_CHARS: usize = 200;
/// Maximum characters of a line of tool output or of a subagent's task.
const MAX_LINE_CHARS: usize = 2_000;
/// Maximum characters of a subagent's result.
const MAX_RESULT_CHARS: usize = 12_000;
/// Maximum number of tool calls without a result; beyond it, all of them are discarded.
const MAX_CALLS: usize = 1_000;
/// Maximum lines of each output stream of a tool call; further lines are dropped.
const MAX_LINES: usize = 50;

#[derive(Debug, PartialEq)]
pub(super) enum ClaudeOutput {
    Chunk(Chunk),
    Event(RunEvent),
}

#[derive(Debug, Default)]
pub(super) struct ClaudeTranslator {
    /// Id of the message that was streamed last. It arrives again as a complete message, which must not be
    /// sent twice.
    streamed_message: Option<Box<str>>,
    /// Names of the called tools, by call id.
    calls: HashMap<Box<str>, Box<str>>,
    /// The model that the CLI tries first.
    preferred: Option<Box<str>>,
    /// The model that answered last.
    actual: Option<Box<str>>,
    /// Why the CLI last retried a request, as the reason of a model fallback.
    retry_reason: Option<&'static str>,
    /// Number of input tokens of the last message.
    window: u64,
    /// Whether any text was sent in this run.
    text_sent: bool,
}

impl ClaudeTranslator {
    pub(super) fn delta(&mut self, delta: &StreamEvent) -> Option<ClaudeOutput> {
        if delta.parent_tool_use_id.is_some() {
            return None;
        }
        let event = &delta.event;
        let block = match event["type"].as_str()? {
            "message_start" => {
                self.streamed_message = event["message"]["id"].as_str().map(Into::into);
                return self.context_usage(&event["message"]["usage"]);
            }
            "content_block_start" => &event["content_block"],
            "content_block_delta" => &event["delta"],
            _ => return None,
        };
        match block["type"].as_str()? {
            "text" | "text_delta" => self.chunk(ChunkKind::Text, block["text"].as_str()?),
            "thinking" | "thinking_delta" => self.chunk(ChunkKind::Thinking, block["thinking"].as_str()?),
            _ => None,
        }
    }

    /// Usage of the model's context window, which is part of each message; `None` if it has not changed.
    fn context_usage(&mut self, usage: &Value) -> Option<ClaudeOutput> {
        let parts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let tokens: u64 = parts.iter().filter_map(|part| usage[part].as_u64()).sum();
        if tokens == 0 || std::mem::replace(&mut self.window, tokens) == tokens {
            return None;
        }
        let context = ContextUsage {
            stage: "turn".into(),
            messages: 0,
            characters: 0,
            estimated_tokens: tokens,
            token_limit: None,
            prompt_tokens: Some(tokens),
            completion_tokens: None,
            compressed: false,
            summaries: 0,
        };
        Some(ClaudeOutput::Event(RunEvent::Usage(UsageReport { spent: None, context: Some(context) })))
    }

    pub(super) fn assistant(&mut self, full: &FullMessage) -> Vec<ClaudeOutput> {
        let message = &full.message;
        if message.model.as_deref() == Some(SYNTHETIC_MODEL) {
            return Vec::new();
        }
        let streamed = message.id.is_some() && message.id == self.streamed_message;
        let model = message.model.as_deref().filter(|_| full.parent_tool_use_id.is_none());
        let mut output: Vec<ClaudeOutput> =
            model.and_then(|model| self.model_fallback(model)).into_iter().collect();
        for block in blocks(&message.content) {
            let text = |field: &str| block.get(field).and_then(Value::as_str).unwrap_or_default();
            match (text("type"), &full.parent_tool_use_id) {
                ("tool_use", Some(parent)) => output.push(subagent_status(parent, text("name"))),
                ("tool_use", None) => output.extend(self.call(text("id"), text("name"), block)),
                ("text", None) if !streamed => output.extend(self.chunk(ChunkKind::Text, text("text"))),
                ("thinking", None) if !streamed => {
                    output.extend(self.chunk(ChunkKind::Thinking, text("thinking")));
                }
                _ => {}
            }
        }
        output
    }

    pub(super) fn user(&mut self, full: &FullMessage) -> Vec<ClaudeOutput> {
        if full.parent_tool_use_id.is_some() {
            return Vec::new();
        }
        let results: Vec<_> = blocks(&full.message.content)
            .filter(|block| block.get("type") == Some(&"tool_result".into()))
            .collect();
        // A frame has one structured result, so with several tool results its owner is unknown.
        let printed = if results.len() == 1 { &full.tool_use_result } else { &Value::Null };
        results.into_iter().flat_map(|block| self.result(block, printed)).collect()
    }

    /// Reports that another model than the preferred one answered. The CLI shows this only by the model's
    /// name, and the names of one model may differ in their suffix.
    fn model_fallback(&mut self, model: &str) -> Option<ClaudeOutput> {
        let before = self.actual.replace(model.into());
        let preferred = self.preferred.get_or_insert_with(|| model.into());
        let base = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
        let same = base(model).starts_with(&base(preferred)) || base(preferred).starts_with(&base(model));
        if same || before.as_deref() == Some(model) {
            return None;
        }
        Some(ClaudeOutput::Event(RunEvent::ModelFallback {
            preferred: line(preferred, MAX_NAME_CHARS).into(),
            actual: line(model, MAX_NAME_CHARS).into(),
            reason: self.retry_reason.unwrap_or("unavailable").into(),
        }))
    }

    pub(super) fn system(&mut self, system: &System) -> Option<ClaudeOutput> {
        if let Some(model) = system.model.as_ref().filter(|_| &*system.subtype == "init") {
            self.preferred = Some(model.clone());
        }
        if &*system.subtype != "api_retry" {
            return None;
        }
        self.retry_reason = Some(match system.error_status {
            Some(429) => "rate_limited",
            Some(529) => "overloaded",
            _ => "unavailable",
        });
        let reason = match system.error_status {
            Some(429) => "The model limits the request rate".into(),
            Some(529) => "The model is overloaded".into(),
            Some(status) => format!("The model answered with status {status}"),
            None => "The model cannot be reached".into(),
        };
        let seconds = system.retry_delay_ms.unwrap_or(0).div_ceil(1000);
        let detail = Some(format!("{reason}; retrying in {seconds} s").into());
        Some(ClaudeOutput::Event(RunEvent::Status {
            activity: Activity::ModelLoading,
            detail,
            subagent: None,
        }))
    }

    /// The text of a successful result, if the run has sent no text: slash commands of the CLI answer only
    /// with their result.
    pub(super) fn result_text(&mut self, outcome: &ResultFrame) -> Option<ClaudeOutput> {
        let result = outcome.result.as_deref().filter(|_| !self.text_sent)?;
        self.chunk(ChunkKind::Text, result)
    }

    fn chunk(&mut self, kind: ChunkKind, text: &str) -> Option<ClaudeOutput> {
        self.text_sent |= kind == ChunkKind::Text && !text.is_empty();
        let chunk = Chunk { kind, content: text.into(), metadata: None };
        (!text.is_empty()).then_some(ClaudeOutput::Chunk(chunk))
    }

    fn call(&mut self, id: &str, tool: &str, block: &Map<String, Value>) -> Vec<ClaudeOutput> {
        if self.calls.len() >= MAX_CALLS {
            self.calls.clear();
        }
        self.calls.insert(id.into(), tool.into());
        let input = block.get("input").unwrap_or(&Value::Null);
        let mut output = vec![ClaudeOutput::Chunk(tools::used(id, tool, &input.to_string()))];
        let event = match tool {
            "TodoWrite" => todos(input),
            "Task" | "Agent" => {
                let task = input["description"].as_str().or(input["prompt"].as_str()).unwrap_or("something");
                let task = line(task, MAX_LINE_CHARS).into();
                Some(subagent(id, SubagentChange::Spawned { task }))
            }
            _ => None,
        };
        output.extend(event.map(ClaudeOutput::Event));
        output
    }

    fn result(&mut self, block: &Map<String, Value>, printed: &Value) -> Vec<ClaudeOutput> {
        let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let text = result_content(block.get("content").unwrap_or(&Value::Null));
        let tool = self.calls.remove(id).unwrap_or_else(|| "tool".into());
        // The CLI does not report a tool's output while the tool runs, so its lines are sent with the result.
        let mut output: Vec<ClaudeOutput> = lines(&tool, printed).map(ClaudeOutput::Event).collect();
        output.push(ClaudeOutput::Chunk(tools::returned(id, &tool, &text, failed)));
        if matches!(&*tool, "Task" | "Agent") {
            let outcome = if failed { SubagentOutcome::Failed } else { SubagentOutcome::Complete };
            let result = text.chars().take(MAX_RESULT_CHARS).collect::<String>();
            let result = (!result.is_empty()).then(|| result.into());
            output.push(ClaudeOutput::Event(subagent(id, SubagentChange::Returned { outcome, result })));
        }
        output
    }
}

/// Progress events for a tool's stdout and stderr, one per line, at most `MAX_LINES` per stream.
fn lines<'a>(tool: &'a str, printed: &'a Value) -> impl Iterator<Item = RunEvent> + 'a {
    [("stdout", Stream::Stdout), ("stderr", Stream::Stderr)].into_iter().flat_map(move |(field, stream)| {
        let text = printed.get(field).and_then(Value::as_str).unwrap_or_default();
        let lines = text.lines().filter(|text| !text.trim().is_empty()).take(MAX_LINES);
        lines.map(move |text| RunEvent::ToolProgress {
            tool: line(tool, MAX_NAME_CHARS).into(),
            line: line(text, MAX_LINE_CHARS).into(),
            stream,
        })
    })
}

fn subagent(id: &str, change: SubagentChange) -> RunEvent {
    RunEvent::Subagent(Subagent { id: line(id, MAX_NAME_CHARS).into(), parent: None, change })
}

fn subagent_status(subagent: &str, tool: &str) -> ClaudeOutput {
    ClaudeOutput::Event(RunEvent::Status {
        activity: Activity::CallingTool,
        detail: Some(line(tool, MAX_NAME_CHARS).into()),
        subagent: Some(line(subagent, MAX_NAME_CHARS).into()),
    })
}

fn todos(input: &Value) -> Option<RunEvent> {
    let todos = input["todos"].as_array()?;
    tools::plan(todos.iter().map(|todo| {
        let state = match todo["status"].as_str() {
            Some("completed") => StepState::Done,
            Some("in_progress") => StepState::InProgress,
            _ => StepState::Pending,
        };
        (todo["content"].as_str().unwrap_or_default(), state)
    }))
}

/// Text of a tool result, which is a string or a list of content blocks.
fn result_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => {
            let parts = blocks(content).map(|block| match block.get("type").and_then(Value::as_str) {
                Some("text") => block.get("text").and_then(Value::as_str).unwrap_or_default(),
                Some("image") => "[image]",
                _ => "",
            });
            parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::{self, Frame};
    use super::*;
    use parlor_model::PlanState;
    use serde_json::json;

    /// Translates these lines and returns the kind and content of the chunks, and the events.
    fn translate(lines: &[Value]) -> (Vec<(ChunkKind, String)>, Vec<RunEvent>) {
        let mut translator = ClaudeTranslator::default();
        let (mut chunks, mut events) = (Vec::new(), Vec::new());
        for line in lines {
            let output = match frames::read(&line.to_string()).unwrap() {
                Frame::Delta(delta) => translator.delta(&delta).into_iter().collect(),
                Frame::Assistant(message) => translator.assistant(&message),
                Frame::User(message) => translator.user(&message),
                Frame::System(system) => translator.system(&system).into_iter().collect(),
                Frame::Result(outcome) => translator.result_text(&outcome).into_iter().collect(),
                other => panic!("{other:?}"),
            };
            for item in output {
                match item {
                    ClaudeOutput::Chunk(chunk) => chunks.push((chunk.kind, chunk.content.to_string())),
                    ClaudeOutput::Event(event) => events.push(event),
                }
            }
        }
        (chunks, events)
    }

    fn delta(event: Value) -> Value {
        json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null })
    }

    fn full_message(id: &str, content: Value) -> Value {
        json!({ "type": "assistant", "message": { "id": id, "model": "m", "content": content }, "parent_tool_use_id": null })
    }

    #[test]
    fn the_output_of_a_tool_is_sent_line_by_line_before_its_result() {
        let called =
            full_message("1", json!([{ "type": "tool_use", "id": "t", "name": "Bash", "input": {} }]));
        let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "one\ntwo" }]);
        let user = json!({ "type": "user", "message": { "content": result }, "parent_tool_use_id": null,
            "tool_use_result": { "stdout": "one\n\ntwo", "stderr": "oh", "interrupted": false } });
        let (chunks, events) = translate(&[called, user]);
        let kinds: Vec<ChunkKind> = chunks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [ChunkKind::ToolUse, ChunkKind::ToolResult]);
        let progress =
            |line: &str, stream| RunEvent::ToolProgress { tool: "Bash".into(), line: line.into(), stream };
        let expected = [("one", Stream::Stdout), ("two", Stream::Stdout), ("oh", Stream::Stderr)];
        assert_eq!(events, expected.map(|(line, stream)| progress(line, stream)));
        let text = json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "t" }] },
            "parent_tool_use_id": null, "tool_use_result": "Error: no" });
        assert_eq!(translate(&[text]).1, [], "a structured result that is a string is not tool output");
    }

    #[test]
    fn a_model_fallback_is_reported_once() {
        let answer = |model: &str| json!({ "type": "assistant", "message": { "model": model, "content": [] }, "parent_tool_use_id": null });
        let begin = json!({ "type": "system", "subtype": "init", "model": "opus-4[1m]" });
        let busy = json!({ "type": "system", "subtype": "api_retry", "error_status": 529 });
        let (_, events) =
            translate(&[begin, answer("opus-4-2025"), busy, answer("haiku-4"), answer("haiku-4")]);
        let fallbacks: Vec<&RunEvent> =
            events.iter().filter(|event| matches!(event, RunEvent::ModelFallback { .. })).collect();
        let (preferred, actual) = ("opus-4[1m]".into(), "haiku-4".into());
        assert_eq!(fallbacks, [&RunEvent::ModelFallback { preferred, actual, reason: "overloaded".into() }]);
        assert_eq!(translate(&[answer("a"), answer("a")]).1, []);
    }

    #[test]
    fn a_streamed_message_is_not_sent_twice() {
        let (chunks, _) = translate(&[
            delta(json!({ "type": "message_start", "message": { "id": "1" } })),
            delta(
                json!({ "type": "content_block_start", "content_block": { "type": "thinking", "thinking": "" } }),
            ),
            delta(
                json!({ "type": "content_block_delta", "delta": { "type": "thinking_delta", "thinking": "hm" } }),
            ),
            delta(
                json!({ "type": "content_block_delta", "delta": { "type": "signature_delta", "signature": "s" } }),
            ),
            full_message("1", json!([{ "type": "thinking", "thinking": "hm" }])),
            delta(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "Hel" } })),
            delta(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "lo" } })),
            full_message("1", json!([{ "type": "text", "text": "Hello" }])),
            full_message("2", json!([{ "type": "text", "text": " again" }])),
            json!({ "type": "result", "subtype": "success", "result": "Hello again" }),
        ]);
        let text = |text: &str| (ChunkKind::Text, text.to_owned());
        assert_eq!(chunks, [(ChunkKind::Thinking, "hm".into()), text("Hel"), text("lo"), text(" again")]);
    }

    #[test]
    fn a_result_is_sent_as_text_if_the_run_sent_none() {
        let synthetic = json!({ "type": "assistant", "message": { "id": "1", "model": "<synthetic>",
            "content": [{ "type": "text", "text": "API Error" }] }, "parent_tool_use_id": null });
        let result = json!({ "type": "result", "subtype": "success", "result": "Total cost: $1" });
        assert_eq!(translate(&[synthetic, result]).0, [(ChunkKind::Text, "Total cost: $1".into())]);
    }

    #[test]
    fn tool_calls_are_sent_with_input_and_output() {
        let call = json!([{ "type": "tool_use", "id": "t", "name": "Read", "input": { "path": "a" } }]);
        let parts = json!([{ "type": "text", "text": "one" }, { "type": "image", "source": {} }]);
        let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": parts }, "text", 1]);
        let (chunks, events) = translate(&[
            full_message("1", call),
            json!({ "type": "user", "message": { "role": "user", "content": result }, "parent_tool_use_id": null }),
            json!({ "type": "user", "message": { "role": "user", "content": "just words" } }),
        ]);
        let expected =
            [(ChunkKind::ToolUse, r#"{"path":"a"}"#.into()), (ChunkKind::ToolResult, "one\n[image]".into())];
        assert_eq!((chunks.as_slice(), events.as_slice()), (expected.as_slice(), [].as_slice()));
    }

    #[test]
    fn the_work_of_a_subagent_is_reported_without_its_text() {
        let spawn = json!([{ "type": "tool_use", "id": "t", "name": "Task", "input": { "description": "Look around" } }]);
        let inside = |content: Value| json!({ "type": "assistant", "message": { "id": "2", "content": content }, "parent_tool_use_id": "t" });
        let returned = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "All quiet" }]);
        let (chunks, events) = translate(&[
            full_message("1", spawn),
            json!({ "type": "stream_event", "event": { "type": "content_block_delta", "delta": { "type": "text_delta", "text": "psst" } }, "parent_tool_use_id": "t" }),
            inside(
                json!([{ "type": "text", "text": "psst" }, { "type": "tool_use", "id": "u", "name": "Grep", "input": {} }]),
            ),
            json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "u", "content": "x" }] }, "parent_tool_use_id": "t" }),
            json!({ "type": "user", "message": { "content": returned }, "parent_tool_use_id": null }),
        ]);
        assert_eq!(
            chunks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            [ChunkKind::ToolUse, ChunkKind::ToolResult]
        );
        let of_subagent = |change| RunEvent::Subagent(Subagent { id: "t".into(), parent: None, change });
        let result = Some("All quiet".into());
        assert_eq!(
            events,
            [
                of_subagent(SubagentChange::Spawned { task: "Look around".into() }),
                RunEvent::Status {
                    activity: Activity::CallingTool,
                    detail: Some("Grep".into()),
                    subagent: Some("t".into())
                },
                of_subagent(SubagentChange::Returned { outcome: SubagentOutcome::Complete, result }),
            ]
        );
    }

    #[test]
    fn a_todo_list_is_sent_as_a_plan() {
        let todos = json!({ "todos": [{ "content": "Look", "status": "completed" }, { "content": "Leap", "status": "completed" }] });
        let (_, events) = translate(&[full_message(
            "1",
            json!([{ "type": "tool_use", "id": "t", "name": "TodoWrite", "input": todos }]),
        )]);
        let [RunEvent::Plan(plan)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((plan.state, &*plan.summary), (PlanState::Completed, "2 of 2 steps done"));
    }

    #[test]
    fn context_usage_is_reported_when_it_changes() {
        let message_start = |tokens: u64| {
            let usage = json!({ "input_tokens": 3, "cache_read_input_tokens": tokens });
            delta(json!({ "type": "message_start", "message": { "id": "1", "usage": usage } }))
        };
        let (_, events) = translate(&[message_start(97), message_start(97), message_start(197)]);
        let reported: Vec<u64> = events
            .iter()
            .filter_map(|event| match event {
                RunEvent::Usage(UsageReport { context: Some(context), .. }) => Some(context.estimated_tokens),
                _ => None,
            })
            .collect();
        assert_eq!(reported, [100, 200]);
    }

    #[test]
    fn a_retry_of_an_overloaded_model_is_reported() {
        let (_, events) = translate(&[
            json!({ "type": "system", "subtype": "api_retry", "error_status": 529, "retry_delay_ms": 1138 }),
            json!({ "type": "system", "subtype": "status" }),
        ]);
        let detail = Some("The model is overloaded; retrying in 2 s".into());
        assert_eq!(events, [RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None }]);
    }

    #[test]
    fn an_approved_input_is_returned_byte_for_byte() {
        let line = r#"{"type":"control_request","request_id":"r\"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"b": 1.0,"a":"\u00e9"},"x":1}}"#;
        let Some(Frame::Permission(permission)) = frames::read(line) else { panic!() };
        assert_eq!((&*permission.tool, permission.input.get()), ("Bash", r#"{"b": 1.0,"a":"\u00e9"}"#));
        let answer = frames::allow(&permission);
        assert!(answer.contains(r#""updatedInput":{"b": 1.0,"a":"\u00e9"}"#), "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["response"]["request_id"], "r\"1");
        let other = r#"{"type":"control_request","request_id":"2","request":{"subtype":"hook_callback"}}"#;
        assert!(matches!(frames::read(other), Some(Frame::Unsupported { .. })));
        for noise in ["", "[]", "{}", "{\"type\":1}", "{\"type\":\"keep_alive\"}", "{\"type\":\"assistant\"}"]
        {
            assert!(frames::read(noise).is_none(), "{noise}");
        }
    }
}
