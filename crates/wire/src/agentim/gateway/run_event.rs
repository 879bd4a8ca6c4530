//! Codec for `event` of the frame `gateway:run_event`, an extension of AgentIM by Parlor, to and from
//! [`RunEvent`].
//!
//! Owns: the limits of its texts and lists. Input beyond a limit is rejected, not cut off. Output contains no
//! `null`.

use super::super::ingress::FrameError;
use parlor_model::run_event::*;
use parlor_model::{RunEvent, Usage};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;

/// Maximum characters of names, titles and labels.
const MAX_NAME_CHARS: usize = 200;
/// Maximum characters of a summary, a line of tool output or a path.
const MAX_LINE_CHARS: usize = 2_000;
/// Maximum characters of long texts, such as a plan or a diff.
const MAX_TEXT_CHARS: usize = 12_000;
const MAX_STEPS: usize = 100;
const MAX_FILES: usize = 20;
/// Largest accepted number: exact in JavaScript, and sums of such numbers fit into a 64-bit database column.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RunEventBody {
    Plan {
        summary: Box<str>,
        status: Box<str>,
        items: Vec<ItemShape>,
        #[serde(skip_serializing_if = "Option::is_none")]
        plan_text: Option<Box<str>>,
    },
    Question {
        question_id: Box<str>,
        questions: Vec<QuestionShape>,
    },
    Usage {
        #[serde(skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
        /// Cost in millionths of a US dollar.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_micros: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        context: Option<ContextShape>,
    },
    Subagent {
        subagent_id: Box<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_id: Option<Box<str>>,
        #[serde(flatten)]
        phase: PhaseShape,
    },
    Changes {
        files: Vec<FileShape>,
        #[serde(default)]
        truncated_count: u32,
    },
    ToolProgress {
        tool: Box<str>,
        line: Box<str>,
        stream: Box<str>,
    },
    ModelFallback {
        preferred_model: Box<str>,
        actual_model: Box<str>,
        reason: Box<str>,
    },
    Task {
        title: Box<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Box<str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        assignee: Option<Box<str>>,
    },
    Status {
        status: Box<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<Box<str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_id: Option<Box<str>>,
    },
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct ItemShape {
    title: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Box<str>>,
    status: Box<str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct QuestionShape {
    question: Box<str>,
    header: Box<str>,
    options: Vec<OptionShape>,
    #[serde(default)]
    multi_select: bool,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct OptionShape {
    label: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<Box<str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ContextShape {
    stage: Box<str>,
    message_count: u64,
    char_count: u64,
    estimated_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual_prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actual_completion_tokens: Option<u64>,
    #[serde(default)]
    compressed: bool,
    #[serde(default)]
    summary_count: u64,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum PhaseShape {
    Spawned {
        task: Box<str>,
    },
    Result {
        outcome: Box<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<str>>,
    },
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct FileShape {
    path: Box<str>,
    summary: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Box<str>>,
}

impl RunEventBody {
    pub fn of(event: &RunEvent) -> Self {
        match event.clone() {
            RunEvent::Plan(plan) => {
                let items = plan.steps.into_iter().map(|step| ItemShape {
                    title: step.title,
                    description: step.description,
                    status: step.state.as_str().into(),
                });
                Self::Plan {
                    summary: plan.summary,
                    status: plan.state.as_str().into(),
                    items: items.collect(),
                    plan_text: plan.text,
                }
            }
            RunEvent::Questions(asked) => {
                let option = |choice: Choice| OptionShape {
                    label: choice.label,
                    description: choice.description,
                    preview: choice.preview,
                };
                let questions = asked.questions.into_iter().map(|question| QuestionShape {
                    question: question.text,
                    header: question.header,
                    options: question.options.into_iter().map(option).collect(),
                    multi_select: question.several,
                });
                Self::Question { question_id: asked.id, questions: questions.collect() }
            }
            RunEvent::Usage(UsageReport { spent, context }) => Self::Usage {
                input_tokens: spent.map(|spent| spent.input_tokens),
                output_tokens: spent.map(|spent| spent.output_tokens),
                cost_micros: spent.and_then(|spent| spent.cost),
                context: context.map(|context| ContextShape {
                    stage: context.stage,
                    message_count: context.messages,
                    char_count: context.characters,
                    estimated_tokens: context.estimated_tokens,
                    token_limit: context.token_limit,
                    actual_prompt_tokens: context.prompt_tokens,
                    actual_completion_tokens: context.completion_tokens,
                    compressed: context.compressed,
                    summary_count: context.summaries,
                }),
            },
            RunEvent::Subagent(Subagent { id, parent, change }) => Self::Subagent {
                subagent_id: id,
                parent_id: parent,
                phase: match change {
                    SubagentChange::Spawned { task } => PhaseShape::Spawned { task },
                    SubagentChange::Returned { outcome, result } => {
                        PhaseShape::Result { outcome: outcome.as_str().into(), result }
                    }
                },
            },
            RunEvent::Changes(ChangeReport { files, left_out }) => {
                let files = files.into_iter().map(|file| FileShape {
                    path: file.path,
                    summary: file.summary,
                    diff: file.diff,
                });
                Self::Changes { files: files.collect(), truncated_count: left_out }
            }
            RunEvent::ToolProgress { tool, line, stream } => {
                Self::ToolProgress { tool, line, stream: stream.as_str().into() }
            }
            RunEvent::ModelFallback { preferred, actual, reason } => {
                Self::ModelFallback { preferred_model: preferred, actual_model: actual, reason }
            }
            RunEvent::Task { title, description, assignee } => Self::Task { title, description, assignee },
            RunEvent::Status { activity, detail, subagent } => {
                Self::Status { status: activity.as_str().into(), detail, subagent_id: subagent }
            }
        }
    }

    pub(super) fn read(self) -> Result<RunEvent, FrameError> {
        Ok(match self {
            Self::Plan { summary, status, items, plan_text } => RunEvent::Plan(Plan {
                summary: line(summary)?,
                state: known(PlanState::parse(&status))?,
                steps: list(items, 0..=MAX_STEPS, |item| {
                    Ok(PlanStep {
                        title: name(item.title)?,
                        description: item.description.map(line).transpose()?,
                        state: known(StepState::parse(&item.status))?,
                    })
                })?,
                text: plan_text.map(text).transpose()?,
            }),
            Self::Question { question_id, questions } => RunEvent::Questions(Questions {
                id: name(question_id)?,
                questions: list(questions, 1..=4, |question| {
                    Ok(Question {
                        text: line(question.question)?,
                        header: name(question.header)?,
                        options: list(question.options, 2..=4, |option| {
                            Ok(Choice {
                                label: name(option.label)?,
                                description: option.description.map(line).transpose()?,
                                preview: option.preview.map(text).transpose()?,
                            })
                        })?,
                        several: question.multi_select,
                    })
                })?,
            }),
            Self::Usage { input_tokens, output_tokens, cost_micros, context } => {
                let spent = match (input_tokens, output_tokens, cost_micros) {
                    (None, None, None) => None,
                    (input, output, cost) => Some(Usage {
                        input_tokens: number(input.unwrap_or(0))?,
                        output_tokens: number(output.unwrap_or(0))?,
                        cost: cost.map(number).transpose()?,
                    }),
                };
                let context = context.map(ContextShape::read).transpose()?;
                if spent.is_none() && context.is_none() {
                    return Err(FrameError::Unknown);
                }
                RunEvent::Usage(UsageReport { spent, context })
            }
            Self::Subagent { subagent_id, parent_id, phase } => RunEvent::Subagent(Subagent {
                id: name(subagent_id)?,
                parent: parent_id.map(name).transpose()?,
                change: match phase {
                    PhaseShape::Spawned { task } => SubagentChange::Spawned { task: line(task)? },
                    PhaseShape::Result { outcome, result } => SubagentChange::Returned {
                        outcome: known(SubagentOutcome::parse(&outcome))?,
                        result: result.map(text).transpose()?,
                    },
                },
            }),
            Self::Changes { files, truncated_count } => RunEvent::Changes(ChangeReport {
                files: list(files, 0..=MAX_FILES, |file| {
                    Ok(ChangedFile {
                        path: line(file.path)?,
                        summary: line(file.summary)?,
                        diff: file.diff.map(text).transpose()?,
                    })
                })?,
                left_out: truncated_count,
            }),
            Self::ToolProgress { tool, line: printed, stream } => RunEvent::ToolProgress {
                tool: name(tool)?,
                line: line(printed)?,
                stream: known(Stream::parse(&stream))?,
            },
            Self::ModelFallback { preferred_model, actual_model, reason } => RunEvent::ModelFallback {
                preferred: name(preferred_model)?,
                actual: name(actual_model)?,
                reason: line(reason)?,
            },
            Self::Task { title, description, assignee } => RunEvent::Task {
                title: name(title)?,
                description: description.map(text).transpose()?,
                assignee: assignee.map(name).transpose()?,
            },
            Self::Status { status, detail, subagent_id } => RunEvent::Status {
                activity: known(Activity::parse(&status))?,
                detail: detail.map(line).transpose()?,
                subagent: subagent_id.map(name).transpose()?,
            },
        })
    }
}

impl ContextShape {
    fn read(self) -> Result<ContextUsage, FrameError> {
        Ok(ContextUsage {
            stage: name(self.stage)?,
            messages: number(self.message_count)?,
            characters: number(self.char_count)?,
            estimated_tokens: number(self.estimated_tokens)?,
            token_limit: self.token_limit.map(number).transpose()?,
            prompt_tokens: self.actual_prompt_tokens.map(number).transpose()?,
            completion_tokens: self.actual_completion_tokens.map(number).transpose()?,
            compressed: self.compressed,
            summaries: number(self.summary_count)?,
        })
    }
}

/// Checks a name: not blank, and within the limit for names.
fn name(name: Box<str>) -> Result<Box<str>, FrameError> {
    if name.trim().is_empty() { Err(FrameError::Unknown) } else { limited(name, MAX_NAME_CHARS) }
}

fn line(line: Box<str>) -> Result<Box<str>, FrameError> {
    limited(line, MAX_LINE_CHARS)
}

fn text(text: Box<str>) -> Result<Box<str>, FrameError> {
    limited(text, MAX_TEXT_CHARS)
}

fn limited(text: Box<str>, max_chars: usize) -> Result<Box<str>, FrameError> {
    if text.chars().nth(max_chars).is_some() { Err(FrameError::Unknown) } else { Ok(text) }
}

fn number(number: u64) -> Result<u64, FrameError> {
    if number > MAX_SAFE_INTEGER { Err(FrameError::Unknown) } else { Ok(number) }
}

fn known<T>(value: Option<T>) -> Result<T, FrameError> {
    value.ok_or(FrameError::Unknown)
}

fn list<T, U>(
    items: Vec<T>,
    count: std::ops::RangeInclusive<usize>,
    read: impl Fn(T) -> Result<U, FrameError>,
) -> Result<Vec<U>, FrameError> {
    if !count.contains(&items.len()) {
        return Err(FrameError::Unknown);
    }
    items.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(event: &str) -> Result<RunEvent, FrameError> {
        serde_json::from_str::<RunEventBody>(event).map_err(|_| FrameError::Unknown)?.read()
    }

    /// Events of each kind, with the fewest and with all fields.
    const EVENTS: &[&str] = &[
        r#"{"kind":"plan","summary":"s","status":"planned","items":[]}"#,
        r##"{"kind":"plan","summary":"s","status":"executing","items":[{"title":"t","description":"d","status":"in_progress"},{"title":"u","status":"skipped"}],"planText":"# p"}"##,
        r#"{"kind":"question","questionId":"q","questions":[{"question":"Which?","header":"h","options":[{"label":"a"},{"label":"b"}],"multiSelect":false}]}"#,
        r#"{"kind":"question","questionId":"q","questions":[{"question":"Which?","header":"h","options":[{"label":"a","description":"d","preview":"p"},{"label":"b"}],"multiSelect":true}]}"#,
        r#"{"kind":"usage","inputTokens":1,"outputTokens":2}"#,
        r#"{"kind":"usage","context":{"stage":"pre","messageCount":1,"charCount":2,"estimatedTokens":3,"compressed":false,"summaryCount":0}}"#,
        r#"{"kind":"usage","inputTokens":1,"outputTokens":2,"costMicros":3,"context":{"stage":"post","messageCount":1,"charCount":2,"estimatedTokens":3,"tokenLimit":4,"actualPromptTokens":5,"actualCompletionTokens":6,"compressed":true,"summaryCount":7}}"#,
        r#"{"kind":"subagent","subagentId":"s","phase":"spawned","task":"t"}"#,
        r#"{"kind":"subagent","subagentId":"s","parentId":"p","phase":"result","outcome":"failed","result":"r"}"#,
        r#"{"kind":"subagent","subagentId":"s","phase":"result","outcome":"complete"}"#,
        r#"{"kind":"changes","files":[],"truncatedCount":0}"#,
        r#"{"kind":"changes","files":[{"path":"a","summary":"Modified","diff":"+x"},{"path":"b","summary":"Added"}],"truncatedCount":9}"#,
        r#"{"kind":"tool_progress","tool":"Bash","line":"","stream":"stderr"}"#,
        r#"{"kind":"model_fallback","preferredModel":"a","actualModel":"b","reason":"rate_limited"}"#,
        r#"{"kind":"task","title":"t"}"#,
        r#"{"kind":"task","title":"t","description":"d","assignee":"ada"}"#,
        r#"{"kind":"status","status":"idle"}"#,
        r#"{"kind":"status","status":"calling_tool","detail":"a.rs","subagentId":"s"}"#,
    ];

    #[test]
    fn a_decoded_event_is_encoded_to_the_same_text() {
        for event in EVENTS {
            let read = read(event).unwrap_or_else(|frame_error| panic!("{frame_error:?}: {event}"));
            assert_eq!(serde_json::to_string(&RunEventBody::of(&read)).unwrap(), *event);
        }
    }

    #[test]
    fn an_optional_field_may_be_null_and_unknown_fields_are_ignored() {
        let event = read(r#"{"kind":"task","title":"t","description":null,"colour":"red"}"#);
        assert_eq!(event, read(r#"{"kind":"task","title":"t"}"#));
    }

    #[test]
    fn too_long_texts_too_many_items_and_unknown_values_are_rejected() {
        let long = |count: usize| "ü".repeat(count);
        let many = |piece: &str, count: usize| vec![piece; count].join(",");
        let task = |title: &str| format!(r#"{{"kind":"task","title":"{title}"}}"#);
        let plan = |count| {
            let items = many(r#"{"title":"t","status":"done"}"#, count);
            format!(r#"{{"kind":"plan","summary":"s","status":"planned","items":[{items}]}}"#)
        };
        let files = |count| {
            format!(r#"{{"kind":"changes","files":[{}]}}"#, many(r#"{"path":"p","summary":"s"}"#, count))
        };
        let question = |questions: usize, options: usize| {
            let options = many(r#"{"label":"a"}"#, options);
            let question = format!(r#"{{"question":"?","header":"h","options":[{options}]}}"#);
            format!(r#"{{"kind":"question","questionId":"q","questions":[{}]}}"#, many(&question, questions))
        };
        let usage = |tokens: u64| format!(r#"{{"kind":"usage","inputTokens":{tokens}}}"#);
        let diff = |count| {
            let diff = long(count);
            format!(r#"{{"kind":"changes","files":[{{"path":"p","summary":"s","diff":"{diff}"}}]}}"#)
        };
        for accepted in [
            task(&long(MAX_NAME_CHARS)),
            plan(MAX_STEPS),
            files(MAX_FILES),
            question(1, 2),
            question(4, 4),
            usage(MAX_SAFE_INTEGER),
            diff(MAX_TEXT_CHARS),
        ] {
            assert!(read(&accepted).is_ok(), "{accepted}");
        }
        for rejected in [
            task(&long(MAX_NAME_CHARS + 1)),
            task(" "),
            plan(MAX_STEPS + 1),
            files(MAX_FILES + 1),
            question(0, 2),
            question(5, 2),
            question(1, 1),
            question(1, 5),
            usage(MAX_SAFE_INTEGER + 1),
            diff(MAX_TEXT_CHARS + 1),
            r#"{"kind":"usage"}"#.into(),
            r#"{"kind":"usage","inputTokens":-1}"#.into(),
            r#"{"kind":"status","status":"asleep"}"#.into(),
            r#"{"kind":"hologram"}"#.into(),
            r#"{"kind":"subagent","subagentId":"s","phase":"spawned"}"#.into(),
        ] {
            assert_eq!(read(&rejected), Err(FrameError::Unknown), "{rejected}");
        }
    }
}
