//! The settings that are one of a few words.

use super::types::Keywords;
use parlor_agents::kinds::model::Dialect;

/// When a commit counts as kept; see the setting for what each of them risks.
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

/// Whether something is done at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

impl Keywords for Switch {
    const WORDS: &'static [(&'static str, Self)] = &[("on", Self::On), ("off", Self::Off)];
}

/// How a model is spoken to.
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

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

impl Keywords for LogFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

/// How much is logged.
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
    /// The word, as log filters take it.
    pub fn as_str(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, level)| *level == self);
        found.map(|(word, _)| *word).expect("every level has a word")
    }
}
