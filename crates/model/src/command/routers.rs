//! Commands on routers, which are models that select the agents that answer an unaddressed message.

use crate::{Edit, ModelAccess, ModelApi, RouterId, SealedKey};
use serde::{Deserialize, Serialize};

/// Creates a router. Returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateRouter {
    pub name: Box<str>,
    pub shared: bool,
    pub model: ModelAccess,
}

/// Changes a router. Returns its new state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRouter {
    pub router: RouterId,
    pub changes: RouterChanges,
}

/// Changes to a router. `None` leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RouterChanges {
    pub name: Option<Box<str>>,
    pub shared: Option<bool>,
    pub model: ModelChanges,
}

/// Changes to the access of a model, for routers and services. `None` leaves a field unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelChanges {
    pub api: Option<ModelApi>,
    /// New base URL. Requires `key` to be set or removed as well, because a key is sealed for one URL.
    pub base_url: Option<Box<str>>,
    pub model: Option<Box<str>>,
    /// `Clear` removes the key.
    pub key: Edit<SealedKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveRouter {
    pub router: RouterId,
}
