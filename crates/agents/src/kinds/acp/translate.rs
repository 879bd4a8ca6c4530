//! Translates ACP session updates to chunks and run events. Pure: its only state is that of the current run.

use super::super::tools::{self, cut, line};
use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResourceResource, Plan as Entries, PlanEntryStatus, SessionUpdate, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use parlor_model::{
    ChangeReport, ChangedFile, Chunk, ChunkKind, ContextUsage, RunEvent, StepState, Stream, UsageReport,
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Maximum number of changed files in a report; further files are only counted.
const MAX_FILES: usize = 20;
/// Maximum characters of a file path or of a line of tool output.
const MAX_LINE_CHARS: usize = 2_000;
/// Maximum characters of a tool name.
const MAX_NAME_CHARS: usize = 200;
/// Maximum bytes of a file's diff.
const MAX_DIFF_BYTES: usize = 8_000;
/// Maximum lines of tool output sent per update; further lines are dropped.
const MAX_LINES: usize = 50;
/// Maximum number of open tool calls. An agent with more never ends its calls, so all of them are discarded.
const MAX_CALLS: usize = 1_000;

#[derive(Debug, PartialEq)]
pub(super) enum AcpOutput {
    Chunk(Chunk),
    Event(RunEvent),
}

/// Translator for the updates of one run.
#[derive(Debug, Default)]
pub(super) struct AcpTranslator {
    calls: HashMap<Box<str>, Call>,
    changed: Vec<ChangedFile>,
    left_out: u32,
    /// Used and total tokens of the context window, as last reported.
    window: Option<(u64, u64)>,
}

/// Current state of a tool call, merged from its updates.
#[derive(Debug, Default)]
struct Call {
    name: Option<String>,
    title: String,
    kind: ToolKind,
    input: Option<Value>,
    content: Vec<ToolCallContent>,
    output: Option<Value>,
    /// Whether the tool's input was sent to the room.
    input_sent: bool,
    /// Bytes of the tool's output that were sent line by line.
    sent_bytes: usize,
}

impl AcpTranslator {
    pub(super) fn translate(&mut self, update: SessionUpdate) -> Vec<AcpOutput> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => text_chunk(ChunkKind::Text, chunk.content),
            SessionUpdate::AgentThoughtChunk(chunk) => text_chunk(ChunkKind::Thinking, chunk.content),
            SessionUpdate::ToolCall(call) => {
                let fields = ToolCallUpdateFields::new()
                    .kind(call.kind)
                    .status(call.status)
                    .title(call.title)
                    .name(call.name)
                    .content(call.content)
                    .raw_input(call.raw_input)
                    .raw_output(call.raw_output);
                self.call(ToolCallUpdate::new(call.tool_call_id, fields))
            }
            SessionUpdate::ToolCallUpdate(update) => self.call(update),
            SessionUpdate::Plan(plan) => plan_event(&plan).map(AcpOutput::Event).into_iter().collect(),
            SessionUpdate::UsageUpdate(usage) => {
                self.context_usage(usage.used, usage.size).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The tool and the exact input for a permission request.
    pub(super) fn permission_request(&mut self, update: ToolCallUpdate) -> (String, String) {
        let id: Box<str> = update.tool_call_id.0.as_ref().into();
        let whole_update = serde_json::to_value(&update).unwrap_or_default();
        let call = self.calls.entry(id).or_default();
        call.merge(update.fields);
        // The title differs for each call, so an approval rule for it would never match again.
        let tool = call.name.clone().unwrap_or_else(|| kind_name(call.kind).into());
        let input = call.input.as_ref().filter(|input| !is_empty(input)).unwrap_or(&whole_update);
        (tool, input.to_string())
    }

    /// Report of the changed files; `None` if there are none.
    pub(super) fn changes(&mut self) -> Option<RunEvent> {
        let (files, left_out) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.left_out));
        (!files.is_empty()).then_some(RunEvent::Changes(ChangeReport { files, left_out }))
    }

    fn call(&mut self, update: ToolCallUpdate) -> Vec<AcpOutput> {
        let id: Box<str> = update.tool_call_id.0.as_ref().into();
        if self.calls.len() >= MAX_CALLS && !self.calls.contains_key(&id) {
            self.calls.clear();
        }
        let status = update.fields.status.unwrap_or_default();
        let call = self.calls.entry(id.clone()).or_default();
        call.merge(update.fields);
        let ended = matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        // Some agents announce a call without input and send the input in a later update.
        let has_input = call.input.as_ref().is_some_and(|input| !is_empty(input));
        let mut output = Vec::new();
        if !call.input_sent && (has_input || ended || status == ToolCallStatus::InProgress) {
            call.input_sent = true;
            let input = call.input.as_ref().filter(|input| !is_empty(input)).cloned();
            let input = input.unwrap_or_else(|| json!({ "title": call.title }));
            output.push(AcpOutput::Chunk(tools::used(&id, call.label(), &input.to_string())));
        }
        if !ended && call.input_sent {
            output.extend(call.progress().map(AcpOutput::Event));
        }
        if ended {
            let call = self.calls.remove(&id).expect("the call was inserted above");
            let failed = status == ToolCallStatus::Failed;
            output.push(AcpOutput::Chunk(tools::returned(&id, call.label(), &call.result(), failed)));
            if !failed {
                self.record_changes(&call.content);
            }
        }
        output
    }

    fn record_changes(&mut self, content: &[ToolCallContent]) {
        for part in content {
            let ToolCallContent::Diff(diff) = part else { continue };
            let path: Box<str> = line(&diff.path.to_string_lossy(), MAX_LINE_CHARS).into();
            let (old, new) = (diff.old_text.as_deref().unwrap_or_default(), &*diff.new_text);
            let (removed, added) = (old.lines().count(), new.lines().count());
            let summary = match &diff.old_text {
                None => format!("new, {added} lines"),
                Some(_) => format!("{removed} lines replaced by {added}"),
            };
            let signed = |sign: char, text: &str| {
                text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>()
            };
            let text = signed('-', old) + &signed('+', new);
            let file =
                ChangedFile { path, summary: summary.into(), diff: Some(cut(&text, MAX_DIFF_BYTES).into()) };
            match self.changed.iter().position(|existing| existing.path == file.path) {
                Some(at) => self.changed[at] = file,
                None if self.changed.len() < MAX_FILES => self.changed.push(file),
                None => self.left_out += 1,
            }
        }
    }

    fn context_usage(&mut self, used: u64, size: u64) -> Option<AcpOutput> {
        if self.window.replace((used, size)) == Some((used, size)) {
            return None;
        }
        let context = ContextUsage {
            stage: "turn".into(),
            messages: 0,
            characters: 0,
            estimated_tokens: used,
            token_limit: Some(size),
            prompt_tokens: None,
            completion_tokens: None,
            compressed: false,
            summaries: 0,
        };
        Some(AcpOutput::Event(RunEvent::Usage(UsageReport { spent: None, context: Some(context) })))
    }
}

impl Call {
    fn merge(&mut self, fields: ToolCallUpdateFields) {
        if let Some(name) = fields.name.filter(|name| !name.trim().is_empty()) {
            self.name = Some(name);
        }
        if let Some(title) = fields.title {
            self.title = title;
        }
        if let Some(kind) = fields.kind {
            self.kind = kind;
        }
        if let Some(content) = fields.content {
            self.content = content;
        }
        self.input = fields.raw_input.or(self.input.take());
        self.output = fields.raw_output.or(self.output.take());
    }

    fn label(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None if !self.title.trim().is_empty() => &self.title,
            None => kind_name(self.kind),
        }
    }

    /// New complete lines of output since the last update. Each update repeats the whole output so far.
    fn progress(&mut self) -> impl Iterator<Item = RunEvent> {
        let texts = self.content.iter().filter_map(|part| match part {
            ToolCallContent::Content(content) => Some(content_text(&content.content)),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        let new = text.get(self.sent_bytes..end).unwrap_or_default().to_owned();
        self.sent_bytes = self.sent_bytes.max(end);
        let tool: Box<str> = line(self.label(), MAX_NAME_CHARS).into();
        let lines: Vec<Box<str>> = new
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(MAX_LINES)
            .map(|text| line(text, MAX_LINE_CHARS).into())
            .collect();
        lines.into_iter().map(move |line| RunEvent::ToolProgress {
            tool: tool.clone(),
            line,
            stream: Stream::Stdout,
        })
    }

    fn result(&self) -> String {
        let parts = self.content.iter().filter_map(|part| match part {
            ToolCallContent::Content(content) => Some(content_text(&content.content)),
            ToolCallContent::Diff(diff) => Some(format!("{} was changed.", diff.path.display())),
            _ => None,
        });
        let text = parts.collect::<Vec<_>>().join("\n");
        match &self.output {
            _ if !text.is_empty() => text,
            Some(Value::String(output)) => output.clone(),
            Some(output) if !is_empty(output) => output.to_string(),
            _ => String::new(),
        }
    }
}

fn text_chunk(kind: ChunkKind, content: ContentBlock) -> Vec<AcpOutput> {
    let text = content_text(&content);
    if text.is_empty() {
        return Vec::new();
    }
    vec![AcpOutput::Chunk(Chunk { kind, content: text.into(), metadata: None })]
}

fn content_text(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => "[image]".into(),
        ContentBlock::Audio(_) => "[audio]".into(),
        ContentBlock::ResourceLink(link) => link.uri.clone(),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            _ => "[file]".into(),
        },
        _ => String::new(),
    }
}

fn plan_event(plan: &Entries) -> Option<RunEvent> {
    tools::plan(plan.entries.iter().map(|entry| {
        let state = match entry.status {
            PlanEntryStatus::Completed => StepState::Done,
            PlanEntryStatus::InProgress => StepState::InProgress,
            _ => StepState::Pending,
        };
        (&*entry.content, state)
    }))
}

fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "tool",
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The progress lines sent for an update in which the tool's whole output so far is `text`.
    fn lines(translator: &mut AcpTranslator, text: &str) -> Vec<String> {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Build",
            "status": "in_progress", "content": content });
        let output = translator.translate(serde_json::from_value(update).unwrap());
        let line = |item: AcpOutput| match item {
            AcpOutput::Event(RunEvent::ToolProgress { tool, line, .. }) => Some(format!("{tool}: {line}")),
            _ => None,
        };
        output.into_iter().filter_map(line).collect()
    }

    #[test]
    fn each_line_of_tool_output_is_sent_once() {
        let mut translator = AcpTranslator::default();
        assert_eq!(lines(&mut translator, "one\ntw"), ["Build: one"]);
        assert_eq!(lines(&mut translator, "one\ntwo\n\nthree\n"), ["Build: two", "Build: three"]);
        assert_eq!(lines(&mut translator, "one\ntwo\n\nthree\n"), [""; 0]);
        assert_eq!(
            lines(&mut translator, "é"),
            [""; 0],
            "restarted output is only sent once it is longer than before"
        );
        assert_eq!(lines(&mut translator, &"x\n".repeat(10_000)).len(), MAX_LINES);
    }
}
