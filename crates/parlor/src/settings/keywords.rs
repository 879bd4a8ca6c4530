//! Enums for settings whose value is one of a fixed set of keywords.

use super::types::Keywords;
use parlor_agents::kinds::model::Dialect;

/// Durability of a commit; the setting `synchronous` documents the risk of each level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    Full,
    Normal,
    Off,
}

impl Keywords for Synchronous {
    const WORDS: &'static [(&'static str, Self)] =
        &[("full", Self::Full), ("normal", Self::Normal), ("off", Self::Off)];
}

/// A setting that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

impl Keywords for Switch {
    const WORDS: &'static [(&'static str, Self)] = &[("on", Self::On), ("off", Self::Off)];
}

/// API of a model endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    OpenAi,
    Anthropic,
}

impl Keywords for ModelApi {
    const WORDS: &'static [(&'static str, Self)] =
        &[("openai", Self::OpenAi), ("anthropic", Self::Anthropic)];
}

impl ModelApi {
    pub fn dialect(self) -> Dialect {
        match self {
            Self::OpenAi => Dialect::OpenAi,
            Self::Anthropic => Dialect::Anthropic,
        }
    }
}

/// Format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl Keywords for LogFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

/// Minimum level of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Keywords for LogLevel {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];
}

impl LogLevel {
    /// Returns the keyword, in the syntax of log filters.
    pub fn as_str(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, level)| *level == self);
        found.map(|(word, _)| *word).expect("every level has a keyword")
    }
}
