//! From what an agent tells of its session to what a room is shown. Pure: keeps what a turn has told so far.

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

const MOST_FILES: usize = 20;
const LONGEST_LINE: usize = 2_000;
const LONGEST_NAME: usize = 200;
const LONGEST_DIFF: usize = 8_000;
/// Of what a tool prints at once: nobody reads more.
const MOST_LINES: usize = 50;
/// Calls that were begun and never ended; an agent that has more has lost count, and so may we.
const MOST_CALLS: usize = 1_000;

#[derive(Debug, PartialEq)]
pub(super) enum AcpOutput {
    Chunk(Chunk),
    Event(RunEvent),
}

/// What one turn has told.
#[derive(Debug, Default)]
pub(super) struct AcpTranslator {
    calls: HashMap<Box<str>, Call>,
    changed: Vec<ChangedFile>,
    left_out: u32,
    window: Option<(u64, u64)>,
}

/// A tool call as it stands.
#[derive(Debug, Default)]
struct Call {
    name: Option<String>,
    title: String,
    kind: ToolKind,
    input: Option<Value>,
    content: Vec<ToolCallContent>,
    output: Option<Value>,
    /// The room has been told what goes in.
    shown: bool,
    /// So much of what came out was told line by line.
    told: usize,
}

impl AcpTranslator {
    pub(super) fn of(&mut self, update: SessionUpdate) -> Vec<AcpOutput> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => said(ChunkKind::Text, chunk.content),
            SessionUpdate::AgentThoughtChunk(chunk) => said(ChunkKind::Thinking, chunk.content),
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
            SessionUpdate::Plan(plan) => planned(&plan).map(AcpOutput::Event).into_iter().collect(),
            SessionUpdate::UsageUpdate(usage) => self.fill(usage.used, usage.size).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// What a permission is asked for: the tool, and its exact input.
    pub(super) fn question(&mut self, update: ToolCallUpdate) -> (String, String) {
        let id: Box<str> = update.tool_call_id.0.as_ref().into();
        let whole = serde_json::to_value(&update).unwrap_or_default();
        let call = self.calls.entry(id).or_default();
        call.take(update.fields);
        // A title is made up anew for each call: a rule about it would mean nothing.
        let tool = call.name.clone().unwrap_or_else(|| word(call.kind).into());
        let input = call.input.as_ref().filter(|input| !is_empty(input)).unwrap_or(&whole);
        (tool, input.to_string())
    }

    /// The files that were changed, if any were.
    pub(super) fn changes(&mut self) -> Option<RunEvent> {
        let (files, left_out) = (std::mem::take(&mut self.changed), std::mem::take(&mut self.left_out));
        (!files.is_empty()).then_some(RunEvent::Changes(ChangeReport { files, left_out }))
    }

    fn call(&mut self, update: ToolCallUpdate) -> Vec<AcpOutput> {
        let id: Box<str> = update.tool_call_id.0.as_ref().into();
        if self.calls.len() >= MOST_CALLS && !self.calls.contains_key(&id) {
            self.calls.clear();
        }
        let status = update.fields.status.unwrap_or_default();
        let call = self.calls.entry(id.clone()).or_default();
        call.take(update.fields);
        let ended = matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed);
        // Some announce a call before they know its input, and tell that a moment later.
        let known = call.input.as_ref().is_some_and(|input| !is_empty(input));
        let mut shown = Vec::new();
        if !call.shown && (known || ended || status == ToolCallStatus::InProgress) {
            call.shown = true;
            let input = call.input.as_ref().filter(|input| !is_empty(input)).cloned();
            let input = input.unwrap_or_else(|| json!({ "title": call.title }));
            shown.push(AcpOutput::Chunk(tools::used(&id, call.label(), &input.to_string())));
        }
        if !ended && call.shown {
            shown.extend(call.progress().map(AcpOutput::Event));
        }
        if ended {
            let call = self.calls.remove(&id).expect("it was entered above");
            let failed = status == ToolCallStatus::Failed;
            shown.push(AcpOutput::Chunk(tools::returned(&id, call.label(), &call.result(), failed)));
            if !failed {
                self.note(&call.content);
            }
        }
        shown
    }

    fn note(&mut self, content: &[ToolCallContent]) {
        for part in content {
            let ToolCallContent::Diff(diff) = part else { continue };
            let path: Box<str> = line(&diff.path.to_string_lossy(), LONGEST_LINE).into();
            let (old, new) = (diff.old_text.as_deref().unwrap_or_default(), &*diff.new_text);
            let (removed, added) = (old.lines().count(), new.lines().count());
            let summary = match &diff.old_text {
                None => format!("new, {added} lines"),
                Some(_) => format!("{removed} lines became {added}"),
            };
            let signed = |sign: char, text: &str| {
                text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>()
            };
            let text = signed('-', old) + &signed('+', new);
            let file =
                ChangedFile { path, summary: summary.into(), diff: Some(cut(&text, LONGEST_DIFF).into()) };
            match self.changed.iter().position(|known| known.path == file.path) {
                Some(at) => self.changed[at] = file,
                None if self.changed.len() < MOST_FILES => self.changed.push(file),
                None => self.left_out += 1,
            }
        }
    }

    fn fill(&mut self, used: u64, size: u64) -> Option<AcpOutput> {
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
    fn take(&mut self, fields: ToolCallUpdateFields) {
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
            None => word(self.kind),
        }
    }

    /// The lines that came out since, where the agent tells all that came out so far each time.
    fn progress(&mut self) -> impl Iterator<Item = RunEvent> {
        let texts = self.content.iter().filter_map(|part| match part {
            ToolCallContent::Content(content) => Some(words(&content.content)),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let end = text.rfind('\n').map_or(0, |end| end + 1);
        let new = text.get(self.told..end).unwrap_or_default().to_owned();
        self.told = self.told.max(end);
        let tool: Box<str> = line(self.label(), LONGEST_NAME).into();
        let lines: Vec<Box<str>> = new
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(MOST_LINES)
            .map(|text| line(text, LONGEST_LINE).into())
            .collect();
        lines.into_iter().map(move |line| RunEvent::ToolProgress {
            tool: tool.clone(),
            line,
            stream: Stream::Stdout,
        })
    }

    fn result(&self) -> String {
        let parts = self.content.iter().filter_map(|part| match part {
            ToolCallContent::Content(content) => Some(words(&content.content)),
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

fn said(kind: ChunkKind, content: ContentBlock) -> Vec<AcpOutput> {
    let text = words(&content);
    if text.is_empty() {
        return Vec::new();
    }
    vec![AcpOutput::Chunk(Chunk { kind, content: text.into(), metadata: None })]
}

fn words(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => "[an image]".into(),
        ContentBlock::Audio(_) => "[a sound]".into(),
        ContentBlock::ResourceLink(link) => link.uri.clone(),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            _ => "[a file]".into(),
        },
        _ => String::new(),
    }
}

fn planned(plan: &Entries) -> Option<RunEvent> {
    tools::plan(plan.entries.iter().map(|entry| {
        let state = match entry.status {
            PlanEntryStatus::Completed => StepState::Done,
            PlanEntryStatus::InProgress => StepState::InProgress,
            _ => StepState::Pending,
        };
        (&*entry.content, state)
    }))
}

fn word(kind: ToolKind) -> &'static str {
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

    /// The lines that are told when an agent has told so much of what came out.
    fn lines(translation: &mut AcpTranslator, text: &str) -> Vec<String> {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "Build",
            "status": "in_progress", "content": content });
        let shown = translation.of(serde_json::from_value(update).unwrap());
        let line = |shown: AcpOutput| match shown {
            AcpOutput::Event(RunEvent::ToolProgress { tool, line, .. }) => Some(format!("{tool}: {line}")),
            _ => None,
        };
        shown.into_iter().filter_map(line).collect()
    }

    #[test]
    fn lines_that_come_out_of_a_tool_are_told_once_as_they_come() {
        let mut translation = AcpTranslator::default();
        assert_eq!(lines(&mut translation, "one\ntw"), ["Build: one"]);
        assert_eq!(lines(&mut translation, "one\ntwo\n\nthree\n"), ["Build: two", "Build: three"]);
        assert_eq!(lines(&mut translation, "one\ntwo\n\nthree\n"), [""; 0]);
        assert_eq!(lines(&mut translation, "é"), [""; 0], "begun anew, it is told when it is longer");
        assert_eq!(lines(&mut translation, &"x\n".repeat(10_000)).len(), MOST_LINES);
    }
}
