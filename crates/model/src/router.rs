//! Models that the hub asks which agents should answer, and how models are reached.

use crate::command::ModelChanges;
use crate::{RouterId, Time, UserId};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Router {
    pub id: RouterId,
    pub name: Box<str>,
    /// Whether everybody may have it pick in their rooms, or only who made it.
    pub shared: bool,
    pub model: ModelAccess,
    pub created_by: UserId,
    pub created_at: Time,
    pub updated_at: Time,
}

/// How a model is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAccess {
    pub api: ModelApi,
    pub base_url: Box<str>,
    pub model: Box<str>,
    /// Sealed for this very address: it does not open for another.
    pub key: Option<SealedKey>,
}

impl ModelAccess {
    pub fn change(&mut self, changes: &ModelChanges) {
        self.api = changes.api.unwrap_or(self.api);
        if let Some(url) = &changes.base_url {
            self.base_url = url.clone();
        }
        if let Some(model) = &changes.model {
            self.model = model.clone();
        }
        if let Some(key) = &changes.key {
            self.key = key.clone();
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct SealedKey(pub Box<[u8]>);

impl fmt::Debug for SealedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealedKey(********)")
    }
}

/// How a model is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelApi {
    #[default]
    OpenAi,
    Anthropic,
}

impl ModelApi {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::OpenAi, Self::Anthropic].into_iter().find(|api| api.as_str() == text)
    }
}
