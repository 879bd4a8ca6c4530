//! From what the Claude CLI prints to what a room is shown. Pure: keeps what a turn has told so far.

use super::super::tools::{self, line};
use super::frames::{FullMessage, ResultFrame, StreamEvent, System, blocks};
use parlor_model::{
    Activity, Chunk, ChunkKind, ContextUsage, RunEvent, StepState, Stream, Subagent, SubagentChange,
    SubagentOutcome, UsageReport,
};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Messages that the CLI makes up itself, mostly to repeat what its result says.
const MADE_UP: &str = "<synthetic>";
const LONGEST_NAME: usize = 200;
const LONGEST_LINE: usize = 2_000;
const LONGEST_RESULT: usize = 12_000;
/// Calls without a result; more are a mistake.
const MOST_CALLS: usize = 1_000;
/// Of what one call of a tool printed.
const MOST_LINES: usize = 50;

#[derive(Debug, PartialEq)]
pub(super) enum ClaudeOutput {
    Chunk(Chunk),
    Event(RunEvent),
}

#[derive(Debug, Default)]
pub(super) struct ClaudeTranslator {
    /// The message whose pieces came last: it follows once more, whole.
    in_pieces: Option<Box<str>>,
    /// The tools that were called, by the id of the call.
    calls: HashMap<Box<str>, Box<str>>,
    /// The model that is asked first, and the one that answered last.
    preferred: Option<Box<str>>,
    actual: Option<Box<str>>,
    /// Why it was asked again.
    trouble: Option<&'static str>,
    /// How many tokens the model was told last.
    window: u64,
    said: bool,
}

impl ClaudeTranslator {
    pub(super) fn piece(&mut self, piece: &StreamEvent) -> Option<ClaudeOutput> {
        if piece.parent_tool_use_id.is_some() {
            return None;
        }
        let event = &piece.event;
        let block = match event["type"].as_str()? {
            "message_start" => {
                self.in_pieces = event["message"]["id"].as_str().map(Into::into);
                return self.filled(&event["message"]["usage"]);
            }
            "content_block_start" => &event["content_block"],
            "content_block_delta" => &event["delta"],
            _ => return None,
        };
        match block["type"].as_str()? {
            "text" | "text_delta" => self.say(ChunkKind::Text, block["text"].as_str()?),
            "thinking" | "thinking_delta" => self.say(ChunkKind::Thinking, block["thinking"].as_str()?),
            _ => None,
        }
    }

    /// How full the model's window is, as it says with each of its messages.
    fn filled(&mut self, usage: &Value) -> Option<ClaudeOutput> {
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

    pub(super) fn assistant(&mut self, whole: &FullMessage) -> Vec<ClaudeOutput> {
        let message = &whole.message;
        if message.model.as_deref() == Some(MADE_UP) {
            return Vec::new();
        }
        let heard = message.id.is_some() && message.id == self.in_pieces;
        let own = message.model.as_deref().filter(|_| whole.parent_tool_use_id.is_none());
        let mut shown: Vec<ClaudeOutput> = own.and_then(|model| self.answers(model)).into_iter().collect();
        for block in blocks(&message.content) {
            let text = |field: &str| block.get(field).and_then(Value::as_str).unwrap_or_default();
            match (text("type"), &whole.parent_tool_use_id) {
                ("tool_use", Some(parent)) => shown.push(at_work(parent, text("name"))),
                ("tool_use", None) => shown.extend(self.call(text("id"), text("name"), block)),
                ("text", None) if !heard => shown.extend(self.say(ChunkKind::Text, text("text"))),
                ("thinking", None) if !heard => shown.extend(self.say(ChunkKind::Thinking, text("thinking"))),
                _ => {}
            }
        }
        shown
    }

    pub(super) fn user(&mut self, whole: &FullMessage) -> Vec<ClaudeOutput> {
        if whole.parent_tool_use_id.is_some() {
            return Vec::new();
        }
        let results: Vec<_> = blocks(&whole.message.content)
            .filter(|block| block.get("type") == Some(&"tool_result".into()))
            .collect();
        // What was printed is said once, of whatever is in the frame.
        let printed = if results.len() == 1 { &whole.tool_use_result } else { &Value::Null };
        results.into_iter().flat_map(|block| self.result(block, printed)).collect()
    }

    /// Another model answers than was asked first: the CLI says so with its name alone. Names of one model may differ in
    /// what is behind them.
    fn answers(&mut self, model: &str) -> Option<ClaudeOutput> {
        let before = self.actual.replace(model.into());
        let preferred = self.preferred.get_or_insert_with(|| model.into());
        let bare = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
        let same = bare(model).starts_with(&bare(preferred)) || bare(preferred).starts_with(&bare(model));
        if same || before.as_deref() == Some(model) {
            return None;
        }
        Some(ClaudeOutput::Event(RunEvent::ModelFallback {
            preferred: line(preferred, LONGEST_NAME).into(),
            actual: line(model, LONGEST_NAME).into(),
            reason: self.trouble.unwrap_or("unavailable").into(),
        }))
    }

    pub(super) fn system(&mut self, system: &System) -> Option<ClaudeOutput> {
        if let Some(model) = system.model.as_ref().filter(|_| &*system.subtype == "init") {
            self.preferred = Some(model.clone());
        }
        if &*system.subtype != "api_retry" {
            return None;
        }
        self.trouble = Some(match system.error_status {
            Some(429) => "rate_limited",
            Some(529) => "overloaded",
            _ => "unavailable",
        });
        let why = match system.error_status {
            Some(429) => "The model has too much to do".into(),
            Some(529) => "The model is overloaded".into(),
            Some(status) => format!("The model answered with {status}"),
            None => "The model cannot be reached".into(),
        };
        let seconds = system.retry_delay_ms.unwrap_or(0).div_ceil(1000);
        let detail = Some(format!("{why}; trying again in {seconds} s").into());
        Some(ClaudeOutput::Event(RunEvent::Status {
            activity: Activity::ModelLoading,
            detail,
            subagent: None,
        }))
    }

    /// What is left to be said when a turn has ended well: commands of the CLI answer with their result alone.
    pub(super) fn rest(&mut self, outcome: &ResultFrame) -> Option<ClaudeOutput> {
        let result = outcome.result.as_deref().filter(|_| !self.said)?;
        self.say(ChunkKind::Text, result)
    }

    fn say(&mut self, kind: ChunkKind, words: &str) -> Option<ClaudeOutput> {
        self.said |= kind == ChunkKind::Text && !words.is_empty();
        let chunk = Chunk { kind, content: words.into(), metadata: None };
        (!words.is_empty()).then_some(ClaudeOutput::Chunk(chunk))
    }

    fn call(&mut self, id: &str, tool: &str, block: &Map<String, Value>) -> Vec<ClaudeOutput> {
        if self.calls.len() >= MOST_CALLS {
            self.calls.clear();
        }
        self.calls.insert(id.into(), tool.into());
        let input = block.get("input").unwrap_or(&Value::Null);
        let mut shown = vec![ClaudeOutput::Chunk(tools::used(id, tool, &input.to_string()))];
        let event = match tool {
            "TodoWrite" => todos(input),
            "Task" | "Agent" => {
                let task = input["description"].as_str().or(input["prompt"].as_str()).unwrap_or("something");
                let task = line(task, LONGEST_LINE).into();
                Some(subagent(id, SubagentChange::Spawned { task }))
            }
            _ => None,
        };
        shown.extend(event.map(ClaudeOutput::Event));
        shown
    }

    fn result(&mut self, block: &Map<String, Value>, printed: &Value) -> Vec<ClaudeOutput> {
        let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let text = words(block.get("content").unwrap_or(&Value::Null));
        let tool = self.calls.remove(id).unwrap_or_else(|| "tool".into());
        // It prints nothing of it while the tool runs.
        let mut shown: Vec<ClaudeOutput> = lines(&tool, printed).map(ClaudeOutput::Event).collect();
        shown.push(ClaudeOutput::Chunk(tools::returned(id, &tool, &text, failed)));
        if matches!(&*tool, "Task" | "Agent") {
            let outcome = if failed { SubagentOutcome::Failed } else { SubagentOutcome::Complete };
            let result = text.chars().take(LONGEST_RESULT).collect::<String>();
            let result = (!result.is_empty()).then(|| result.into());
            shown.push(ClaudeOutput::Event(subagent(id, SubagentChange::Returned { outcome, result })));
        }
        shown
    }
}

/// What a tool printed, line by line, as far as that is many.
fn lines<'a>(tool: &'a str, printed: &'a Value) -> impl Iterator<Item = RunEvent> + 'a {
    [("stdout", Stream::Stdout), ("stderr", Stream::Stderr)].into_iter().flat_map(move |(field, stream)| {
        let text = printed.get(field).and_then(Value::as_str).unwrap_or_default();
        let lines = text.lines().filter(|text| !text.trim().is_empty()).take(MOST_LINES);
        lines.map(move |text| RunEvent::ToolProgress {
            tool: line(tool, LONGEST_NAME).into(),
            line: line(text, LONGEST_LINE).into(),
            stream,
        })
    })
}

fn subagent(id: &str, change: SubagentChange) -> RunEvent {
    RunEvent::Subagent(Subagent { id: line(id, LONGEST_NAME).into(), parent: None, change })
}

fn at_work(subagent: &str, tool: &str) -> ClaudeOutput {
    ClaudeOutput::Event(RunEvent::Status {
        activity: Activity::CallingTool,
        detail: Some(line(tool, LONGEST_NAME).into()),
        subagent: Some(line(subagent, LONGEST_NAME).into()),
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

/// A result is a text, or blocks of which some are texts.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        content => {
            let parts = blocks(content).map(|block| match block.get("type").and_then(Value::as_str) {
                Some("text") => block.get("text").and_then(Value::as_str).unwrap_or_default(),
                Some("image") => "[an image]",
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

    /// What a room is shown of these lines: kind and content of chunks, and the events.
    fn shown(lines: &[Value]) -> (Vec<(ChunkKind, String)>, Vec<RunEvent>) {
        let mut translation = ClaudeTranslator::default();
        let (mut chunks, mut events) = (Vec::new(), Vec::new());
        for line in lines {
            let shown = match frames::read(&line.to_string()).unwrap() {
                Frame::Piece(piece) => translation.piece(&piece).into_iter().collect(),
                Frame::Assistant(whole) => translation.assistant(&whole),
                Frame::User(whole) => translation.user(&whole),
                Frame::System(system) => translation.system(&system).into_iter().collect(),
                Frame::Result(outcome) => translation.rest(&outcome).into_iter().collect(),
                other => panic!("{other:?}"),
            };
            for shown in shown {
                match shown {
                    ClaudeOutput::Chunk(chunk) => chunks.push((chunk.kind, chunk.content.to_string())),
                    ClaudeOutput::Event(event) => events.push(event),
                }
            }
        }
        (chunks, events)
    }

    fn piece(event: Value) -> Value {
        json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null })
    }

    fn whole(id: &str, content: Value) -> Value {
        json!({ "type": "assistant", "message": { "id": id, "model": "m", "content": content }, "parent_tool_use_id": null })
    }

    #[test]
    fn what_a_tool_printed_is_told_line_by_line_before_its_result() {
        let called = whole("1", json!([{ "type": "tool_use", "id": "t", "name": "Bash", "input": {} }]));
        let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "one\ntwo" }]);
        let user = json!({ "type": "user", "message": { "content": result }, "parent_tool_use_id": null,
            "tool_use_result": { "stdout": "one\n\ntwo", "stderr": "oh", "interrupted": false } });
        let (chunks, events) = shown(&[called, user]);
        let kinds: Vec<ChunkKind> = chunks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [ChunkKind::ToolUse, ChunkKind::ToolResult]);
        let progress =
            |line: &str, stream| RunEvent::ToolProgress { tool: "Bash".into(), line: line.into(), stream };
        let expected = [("one", Stream::Stdout), ("two", Stream::Stdout), ("oh", Stream::Stderr)];
        assert_eq!(events, expected.map(|(line, stream)| progress(line, stream)));
        let text = json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "t" }] },
            "parent_tool_use_id": null, "tool_use_result": "Error: no" });
        assert_eq!(shown(&[text]).1, [], "what others return is no output");
    }

    #[test]
    fn that_another_model_answers_is_told_once() {
        let answer = |model: &str| json!({ "type": "assistant", "message": { "model": model, "content": [] }, "parent_tool_use_id": null });
        let begin = json!({ "type": "system", "subtype": "init", "model": "opus-4[1m]" });
        let busy = json!({ "type": "system", "subtype": "api_retry", "error_status": 529 });
        let (_, events) = shown(&[begin, answer("opus-4-2025"), busy, answer("haiku-4"), answer("haiku-4")]);
        let told: Vec<&RunEvent> =
            events.iter().filter(|event| matches!(event, RunEvent::ModelFallback { .. })).collect();
        let (preferred, actual) = ("opus-4[1m]".into(), "haiku-4".into());
        assert_eq!(told, [&RunEvent::ModelFallback { preferred, actual, reason: "overloaded".into() }]);
        assert_eq!(shown(&[answer("a"), answer("a")]).1, []);
    }

    #[test]
    fn what_came_in_pieces_is_not_said_again() {
        let (chunks, _) = shown(&[
            piece(json!({ "type": "message_start", "message": { "id": "1" } })),
            piece(
                json!({ "type": "content_block_start", "content_block": { "type": "thinking", "thinking": "" } }),
            ),
            piece(
                json!({ "type": "content_block_delta", "delta": { "type": "thinking_delta", "thinking": "hm" } }),
            ),
            piece(
                json!({ "type": "content_block_delta", "delta": { "type": "signature_delta", "signature": "s" } }),
            ),
            whole("1", json!([{ "type": "thinking", "thinking": "hm" }])),
            piece(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "Hel" } })),
            piece(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "lo" } })),
            whole("1", json!([{ "type": "text", "text": "Hello" }])),
            whole("2", json!([{ "type": "text", "text": " again" }])),
            json!({ "type": "result", "subtype": "success", "result": "Hello again" }),
        ]);
        let text = |text: &str| (ChunkKind::Text, text.to_owned());
        assert_eq!(chunks, [(ChunkKind::Thinking, "hm".into()), text("Hel"), text("lo"), text(" again")]);
    }

    #[test]
    fn a_result_is_said_where_nothing_else_was() {
        let made_up = json!({ "type": "assistant", "message": { "id": "1", "model": "<synthetic>",
            "content": [{ "type": "text", "text": "API Error" }] }, "parent_tool_use_id": null });
        let result = json!({ "type": "result", "subtype": "success", "result": "Total cost: $1" });
        assert_eq!(shown(&[made_up, result]).0, [(ChunkKind::Text, "Total cost: $1".into())]);
    }

    #[test]
    fn tools_are_shown_with_what_went_in_and_what_came_out() {
        let call = json!([{ "type": "tool_use", "id": "t", "name": "Read", "input": { "path": "a" } }]);
        let parts = json!([{ "type": "text", "text": "one" }, { "type": "image", "source": {} }]);
        let result = json!([{ "type": "tool_result", "tool_use_id": "t", "content": parts }, "text", 1]);
        let (chunks, events) = shown(&[
            whole("1", call),
            json!({ "type": "user", "message": { "role": "user", "content": result }, "parent_tool_use_id": null }),
            json!({ "type": "user", "message": { "role": "user", "content": "just words" } }),
        ]);
        let expected = [
            (ChunkKind::ToolUse, r#"{"path":"a"}"#.into()),
            (ChunkKind::ToolResult, "one\n[an image]".into()),
        ];
        assert_eq!((chunks.as_slice(), events.as_slice()), (expected.as_slice(), [].as_slice()));
    }

    #[test]
    fn a_subagent_is_seen_at_work_and_not_heard() {
        let spawn = json!([{ "type": "tool_use", "id": "t", "name": "Task", "input": { "description": "Look around" } }]);
        let inside = |content: Value| json!({ "type": "assistant", "message": { "id": "2", "content": content }, "parent_tool_use_id": "t" });
        let back = json!([{ "type": "tool_result", "tool_use_id": "t", "content": "All quiet" }]);
        let (chunks, events) = shown(&[
            whole("1", spawn),
            json!({ "type": "stream_event", "event": { "type": "content_block_delta", "delta": { "type": "text_delta", "text": "psst" } }, "parent_tool_use_id": "t" }),
            inside(
                json!([{ "type": "text", "text": "psst" }, { "type": "tool_use", "id": "u", "name": "Grep", "input": {} }]),
            ),
            json!({ "type": "user", "message": { "content": [{ "type": "tool_result", "tool_use_id": "u", "content": "x" }] }, "parent_tool_use_id": "t" }),
            json!({ "type": "user", "message": { "content": back }, "parent_tool_use_id": null }),
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
    fn a_list_of_things_to_do_is_a_plan() {
        let todos = json!({ "todos": [{ "content": "Look", "status": "completed" }, { "content": "Leap", "status": "completed" }] });
        let (_, events) = shown(&[whole(
            "1",
            json!([{ "type": "tool_use", "id": "t", "name": "TodoWrite", "input": todos }]),
        )]);
        let [RunEvent::Plan(plan)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((plan.state, &*plan.summary), (PlanState::Completed, "2 of 2 steps done"));
    }

    #[test]
    fn how_full_the_window_is_is_told_when_it_changes() {
        let begun = |tokens: u64| {
            let usage = json!({ "input_tokens": 3, "cache_read_input_tokens": tokens });
            piece(json!({ "type": "message_start", "message": { "id": "1", "usage": usage } }))
        };
        let (_, events) = shown(&[begun(97), begun(97), begun(197)]);
        let told: Vec<u64> = events
            .iter()
            .filter_map(|event| match event {
                RunEvent::Usage(UsageReport { context: Some(context), .. }) => Some(context.estimated_tokens),
                _ => None,
            })
            .collect();
        assert_eq!(told, [100, 200]);
    }

    #[test]
    fn a_busy_model_is_told_of() {
        let (_, events) = shown(&[
            json!({ "type": "system", "subtype": "api_retry", "error_status": 529, "retry_delay_ms": 1138 }),
            json!({ "type": "system", "subtype": "status" }),
        ]);
        let detail = Some("The model is overloaded; trying again in 2 s".into());
        assert_eq!(events, [RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None }]);
    }

    #[test]
    fn what_is_allowed_goes_back_to_the_letter() {
        let line = r#"{"type":"control_request","request_id":"r\"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"b": 1.0,"a":"\u00e9"},"x":1}}"#;
        let Some(Frame::Permission(permission)) = frames::read(line) else { panic!() };
        assert_eq!((&*permission.tool, permission.input.get()), ("Bash", r#"{"b": 1.0,"a":"\u00e9"}"#));
        let answer = frames::allow(&permission);
        assert!(answer.contains(r#""updatedInput":{"b": 1.0,"a":"\u00e9"}"#), "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["response"]["request_id"], "r\"1");
        let other = r#"{"type":"control_request","request_id":"2","request":{"subtype":"hook_callback"}}"#;
        assert!(matches!(frames::read(other), Some(Frame::Unknown { .. })));
        for noise in ["", "[]", "{}", "{\"type\":1}", "{\"type\":\"keep_alive\"}", "{\"type\":\"assistant\"}"]
        {
            assert!(frames::read(noise).is_none(), "{noise}");
        }
    }
}
