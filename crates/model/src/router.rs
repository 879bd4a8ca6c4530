//! Routers (models that perform triage) and the access data of models in general.

use crate::command::ModelChanges;
use crate::{RouterId, Time, UserId};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    pub id: RouterId,
    pub name: Box<str>,
    /// Whether all users may use the router in their rooms, or only its creator.
    pub shared: bool,
    pub model: ModelAccess,
    pub created_by: UserId,
    pub created_at: Time,
    pub updated_at: Time,
}

/// Address, protocol and API key of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAccess {
    pub api: ModelApi,
    pub base_url: Box<str>,
    pub model: Box<str>,
    /// Encrypted for this `base_url`: it cannot be decrypted for another URL.
    pub key: Option<SealedKey>,
}

impl ModelAccess {
    /// Applies the changes that are set.
    pub fn change(&mut self, changes: &ModelChanges) {
        self.api = changes.api.unwrap_or(self.api);
        if let Some(url) = &changes.base_url {
            self.base_url = url.clone();
        }
        if let Some(model) = &changes.model {
            self.model = model.clone();
        }
        changes.key.apply_to(&mut self.key);
    }
}

/// Encrypted API key of a model provider, or encrypted secret of a key that signs tokens. `Debug` does not print its content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedKey(pub Box<[u8]>);

impl fmt::Debug for SealedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealedKey(********)")
    }
}

/// HTTP API of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
