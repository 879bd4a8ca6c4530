//! Tools of agents: their descriptions, calls and results.
//!
//! Owns: the form of the JSON file that describes a program in a `tools` folder.

use crate::{AgentId, Payload, SessionId, Time};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A tool as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDescription {
    pub name: Box<str>,
    pub description: Box<str>,
    /// JSON schema of the input, for display to models and users.
    pub schema: Payload,
    /// Time limit of a call; `None` for a tool that waits for nothing.
    pub timeout: Option<Duration>,
}

/// A call of a tool for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub agent: AgentId,
    pub session: Option<SessionId>,
    pub tool: Box<str>,
    pub input: Payload,
}

/// Result of a call of an existing tool by a permitted caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub tool: Box<str>,
    /// Time at which the call ended.
    pub at: Time,
    pub outcome: Result<Payload, ToolFailure>,
}

/// Why a call failed, for the model or program that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFailure {
    pub code: ToolFailureCode,
    pub message: Box<str>,
    /// Further text, such as the last lines that a program wrote to stderr.
    pub details: Option<Box<str>>,
}

impl ToolFailure {
    pub fn new(code: ToolFailureCode, message: impl Into<Box<str>>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    /// Adds further text, unless it is empty.
    pub fn with_details(self, details: impl Into<Box<str>>) -> Self {
        Self { details: Some(details.into()).filter(|details| !details.is_empty()), ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolFailureCode {
    /// The input does not have the form that the tool requires.
    InvalidInput,
    /// The agent may not do this.
    NotAllowed,
    /// The call did not end within its time limit, or no user answered.
    Timeout,
    /// The program exited with an error.
    Failed,
    /// The program cannot be started.
    CannotStart,
    /// The output of the program is not JSON, or is too large.
    InvalidOutput,
    /// Too many calls are waiting.
    Busy,
    /// The agent has no active run in which it could ask.
    NoRun,
    /// The hub cannot read or store anything now.
    Unavailable,
}

impl ToolFailureCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::NotAllowed => "not_allowed",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
            Self::CannotStart => "cannot_start",
            Self::InvalidOutput => "invalid_output",
            Self::Busy => "busy",
            Self::NoRun => "no_run",
            Self::Unavailable => "unavailable",
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::Busy | Self::Unavailable)
    }
}

/// Content of `tools/NAME.json`, which describes a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolManifest {
    pub description: Box<str>,
    /// JSON schema of the input.
    pub input_schema: Payload,
    pub timeout: Duration,
    /// Name of the executable file in the same folder; `None` for the name of the tool.
    pub program: Option<Box<str>>,
}

impl ToolManifest {
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
    pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);
    /// Maximum bytes of the file.
    pub const MAX_BYTES: usize = 64 * 1024;
    pub const MAX_DESCRIPTION_CHARS: usize = 4000;
    const ANY_OBJECT: &str = r#"{"type":"object"}"#;

    /// Whether a tool may have this name: 1 to 64 of `A`–`Z`, `a`–`z`, `0`–`9`, `_` and `-`.
    pub fn is_name(name: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        (1..=64).contains(&name.len()) && name.bytes().all(allowed)
    }

    /// Parses the file that describes the tool `name`. Unknown fields are ignored.
    pub fn parse(name: &str, json: &str) -> Result<Self, InvalidTool> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Form<'a> {
            name: Option<Box<str>>,
            description: Box<str>,
            #[serde(borrow, alias = "schema")]
            input_schema: Option<&'a serde_json::value::RawValue>,
            timeout_ms: Option<f64>,
            program: Option<Box<str>>,
        }
        if !Self::is_name(name) {
            return Err(InvalidTool("the name of a tool consists of 1 to 64 letters, digits, _ and -"));
        }
        if json.len() > Self::MAX_BYTES {
            return Err(InvalidTool("the description is larger than 64 KiB"));
        }
        let form: Form<'_> = serde_json::from_str(json).map_err(|_| {
            InvalidTool(
                "must be a JSON object with description (text), and optionally inputSchema (object), \
                 timeoutMs (number) and program (text)",
            )
        })?;
        if form.name.is_some_and(|own| *own != *name) {
            return Err(InvalidTool("name must be the name of the file without .json"));
        }
        let description = form.description.trim();
        if description.is_empty() || description.chars().count() > Self::MAX_DESCRIPTION_CHARS {
            return Err(InvalidTool("description must have 1 to 4000 characters"));
        }
        let schema = form.input_schema.map_or(Self::ANY_OBJECT, |schema| schema.get());
        if !schema.starts_with('{') {
            return Err(InvalidTool("inputSchema must be an object"));
        }
        let timeout = match form.timeout_ms {
            None => Self::DEFAULT_TIMEOUT,
            Some(millis) if (1.0..=Self::MAX_TIMEOUT.as_millis() as f64).contains(&millis) => {
                Duration::from_millis(millis as u64)
            }
            Some(_) => return Err(InvalidTool("timeoutMs must be between 1 and 600000")),
        };
        let is_file_name =
            |program: &str| !matches!(program, "" | "." | "..") && !program.contains(['/', '\\', '\0']);
        let program =
            match form.program.as_deref().map(|program| program.strip_prefix("./").unwrap_or(program)) {
                Some(program) if !is_file_name(program) => {
                    return Err(InvalidTool("program must be the name of a file in the same folder"));
                }
                program => program.map(Into::into),
            };
        Ok(Self { description: description.into(), input_schema: Payload(schema.into()), timeout, program })
    }
}

/// The rule that the description of a tool violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTool(pub &'static str);

impl fmt::Display for InvalidTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, rule: &str) {
        let invalid = ToolManifest::parse("weather", json).unwrap_err();
        assert!(invalid.0.contains(rule), "{json}: {invalid}");
    }

    #[test]
    fn a_description_has_defaults() {
        let manifest = ToolManifest::parse("weather", r#"{"description":" Reports the weather. "}"#).unwrap();
        let expected = ToolManifest {
            description: "Reports the weather.".into(),
            input_schema: Payload(r#"{"type":"object"}"#.into()),
            timeout: Duration::from_secs(60),
            program: None,
        };
        assert_eq!(manifest, expected);
    }

    #[test]
    fn a_complete_description_is_parsed_with_its_schema_unchanged() {
        let json = r#"{"name":"weather","description":"d","schema":{"type": "object", "x":[1.0]},
            "timeoutMs":1500,"program":"./weather.py","version":2}"#;
        let manifest = ToolManifest::parse("weather", json).unwrap();
        assert_eq!(&*manifest.input_schema.0, r#"{"type": "object", "x":[1.0]}"#);
        assert_eq!(
            (manifest.timeout, manifest.program.as_deref()),
            (Duration::from_millis(1500), Some("weather.py"))
        );
    }

    #[test]
    fn invalid_descriptions_name_the_rule() {
        check("{}", "must be a JSON object");
        check("[]", "must be a JSON object");
        check(r#"{"description":7}"#, "must be a JSON object");
        check(r#"{"description":" "}"#, "1 to 4000");
        check(&format!(r#"{{"description":"{}"}}"#, "x".repeat(4001)), "1 to 4000");
        check(r#"{"description":"d","name":"other"}"#, "name must be");
        check(r#"{"description":"d","inputSchema":[]}"#, "inputSchema");
        check(r#"{"description":"d","timeoutMs":0}"#, "timeoutMs");
        check(r#"{"description":"d","timeoutMs":600001}"#, "timeoutMs");
        for program in ["", ".", "..", "../x", "/bin/sh", "a/b", "a\\\\b", "./../x"] {
            check(&format!(r#"{{"description":"d","program":"{program}"}}"#), "program must be");
        }
        check(&format!(r#"{{"description":"d","x":"{}"}}"#, "x".repeat(65_536)), "64 KiB");
    }

    #[test]
    fn a_tool_has_a_safe_name() {
        for name in ["a", "send-message", "A_1"] {
            assert!(ToolManifest::is_name(name), "{name}");
        }
        for name in ["", ".", "..", "a/b", "a b", "é", "a.b", &"x".repeat(65)] {
            assert!(!ToolManifest::is_name(name), "{name}");
            assert!(ToolManifest::parse(name, r#"{"description":"d"}"#).is_err(), "{name}");
        }
    }
}
