//! Sessions of agents, and the settings of their automatic turns.

use crate::{AgentId, Payload, RoomId, SessionId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A conversational context of an agent, with its own subscriptions and mailbox. Every agent has `main`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub agent: AgentId,
    pub id: SessionId,
    pub title: Box<str>,
    pub created_at: Time,
    /// Start of the latest turn; `None` if no turn has started in the session.
    pub last_used_at: Option<Time>,
    /// Whether the owner marked the session as the agent's default. Only `main` is marked when it is created.
    pub is_default: bool,
    /// Automatic turns of the session; `None` to use the setting of the agent.
    pub auto_run: Option<AutoRun>,
    /// Room in which the replies and tool calls of the session's turns are posted.
    pub room: Option<RoomId>,
    /// Owner-defined settings that the hub stores without interpreting them.
    pub settings: BTreeMap<Box<str>, Payload>,
}

impl Session {
    /// Maximum characters of a title.
    pub const MAX_TITLE_CHARS: usize = 200;
    /// Maximum bytes of the settings, names included.
    pub const MAX_SETTINGS_BYTES: usize = 65_536;

    /// A session without settings.
    pub fn new(agent: AgentId, id: SessionId, title: impl Into<Box<str>>, created_at: Time) -> Self {
        Self {
            agent,
            is_default: id == SessionId::main(),
            id,
            title: title.into(),
            created_at,
            last_used_at: None,
            auto_run: None,
            room: None,
            settings: BTreeMap::new(),
        }
    }
}

/// Whether and how messages in a mailbox start turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoRun {
    pub enabled: bool,
    /// Model that decides whether a batch starts a turn; `None` for the default model of the hub.
    pub triage_model: Option<Box<str>>,
    /// Time without a further message after which a batch is complete.
    pub debounce: Duration,
    /// Number of messages at which a batch is complete at once.
    pub max_batch: u32,
}

impl AutoRun {
    pub const DEFAULT_DEBOUNCE: Duration = Duration::from_secs(3);
    pub const MAX_DEBOUNCE: Duration = Duration::from_secs(600);
    pub const DEFAULT_BATCH: u32 = 20;
    pub const MAX_BATCH: u32 = 100;
    const MAX_MODEL_CHARS: usize = 200;

    /// Automatic turns with the default limits.
    pub fn of(enabled: bool) -> Self {
        Self { enabled, triage_model: None, debounce: Self::DEFAULT_DEBOUNCE, max_batch: Self::DEFAULT_BATCH }
    }

    /// Parses the JSON of the setting: a boolean, or an object with `enabled`, `triageModel`, `debounceMs` and
    /// `maxBatchSize`. `null` means that the setting is absent. An object without `enabled` is disabled, and unknown
    /// fields are ignored.
    pub fn parse(json: &str) -> Result<Option<Self>, InvalidAutoRun> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Form {
            enabled: Option<bool>,
            triage_model: Option<Box<str>>,
            debounce_ms: Option<f64>,
            max_batch_size: Option<f64>,
        }
        if let Ok(enabled) = serde_json::from_str::<Option<bool>>(json) {
            return Ok(enabled.map(Self::of));
        }
        if !json.trim_start().starts_with('{') {
            return Err(InvalidAutoRun("must be a boolean or an object"));
        }
        let form: Form = serde_json::from_str(json).map_err(|_| {
            InvalidAutoRun(
                "must have enabled (boolean), triageModel (text), debounceMs and maxBatchSize (numbers)",
            )
        })?;
        let mut auto_run = Self::of(form.enabled.unwrap_or_default());
        if let Some(model) = form.triage_model {
            let is_line = !model.trim().is_empty() && !model.chars().any(char::is_control);
            if !is_line || model.chars().count() > Self::MAX_MODEL_CHARS {
                return Err(InvalidAutoRun(
                    "triageModel must be the name of a model, at most 200 characters",
                ));
            }
            auto_run.triage_model = Some(model);
        }
        if let Some(millis) = form.debounce_ms {
            if !(0.0..=Self::MAX_DEBOUNCE.as_millis() as f64).contains(&millis) {
                return Err(InvalidAutoRun("debounceMs must be between 0 and 600000"));
            }
            auto_run.debounce = Duration::from_millis(millis as u64);
        }
        if let Some(size) = form.max_batch_size {
            if !(1.0..=f64::from(Self::MAX_BATCH)).contains(&size) {
                return Err(InvalidAutoRun("maxBatchSize must be between 1 and 100"));
            }
            auto_run.max_batch = size as u32;
        }
        Ok(Some(auto_run))
    }

    /// Returns the setting as JSON: a boolean if all limits have their default.
    pub fn to_json(&self) -> Payload {
        if *self == Self::of(self.enabled) {
            return Payload(if self.enabled { "true" } else { "false" }.into());
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Form<'a> {
            enabled: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            triage_model: Option<&'a str>,
            debounce_ms: u64,
            max_batch_size: u32,
        }
        let form = Form {
            enabled: self.enabled,
            triage_model: self.triage_model.as_deref(),
            debounce_ms: self.debounce.as_millis() as u64,
            max_batch_size: self.max_batch,
        };
        Payload(serde_json::to_string(&form).expect("numbers and texts always serialise to JSON").into())
    }
}

/// The rule that the JSON of an automatic-turn setting violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidAutoRun(pub &'static str);

impl fmt::Display for InvalidAutoRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Result<Option<AutoRun>, &str>) {
        let parsed = AutoRun::parse(json).map_err(|invalid| invalid.0);
        match (parsed, expected) {
            (Err(rule), Err(part)) => assert!(rule.contains(part), "{rule}"),
            (parsed, expected) => assert_eq!(parsed, expected, "{json}"),
        }
    }

    #[test]
    fn automatic_turns_are_a_boolean_or_an_object_with_limits() {
        check("true", Ok(Some(AutoRun::of(true))));
        check(" false ", Ok(Some(AutoRun::of(false))));
        check("null", Ok(None));
        check("{}", Ok(Some(AutoRun::of(false))));
        check(r#"{"enabled":true,"debounceMs":null,"other":[1]}"#, Ok(Some(AutoRun::of(true))));
        let full = r#"{"enabled":true,"triageModel":"haiku","debounceMs":500,"maxBatchSize":5}"#;
        let debounce = Duration::from_millis(500);
        let expected = AutoRun { enabled: true, triage_model: Some("haiku".into()), debounce, max_batch: 5 };
        check(full, Ok(Some(expected)));
    }

    #[test]
    fn invalid_automatic_turns_name_the_rule() {
        check("1", Err("must be a boolean or an object"));
        check("[true]", Err("must be a boolean or an object"));
        check(r#"{"enabled":"yes"}"#, Err("enabled (boolean)"));
        check(r#"{"enabled":true,"debounceMs":-1}"#, Err("debounceMs"));
        check(r#"{"enabled":true,"debounceMs":600001}"#, Err("debounceMs"));
        check(r#"{"enabled":true,"maxBatchSize":0}"#, Err("maxBatchSize"));
        check(r#"{"enabled":true,"maxBatchSize":101}"#, Err("maxBatchSize"));
        check(r#"{"enabled":true,"triageModel":" "}"#, Err("triageModel"));
    }

    #[test]
    fn automatic_turns_that_are_encoded_are_parsed_back() {
        let changed = AutoRun { triage_model: Some("a \"b\"".into()), max_batch: 7, ..AutoRun::of(true) };
        for auto_run in [AutoRun::of(true), AutoRun::of(false), changed] {
            assert_eq!(AutoRun::parse(&auto_run.to_json().0), Ok(Some(auto_run)));
        }
    }
}
