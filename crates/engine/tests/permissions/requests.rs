//! The scopes, and values that several commands and queries of the permission table contain.

use crate::callers::lobby;

use parlor_model::{ModelAccess, ModelApi, Post, RoomId, RoomSelection, Scope, SecretHash, Time};

pub const READ: Option<Scope> = Some(Scope::Read);
pub const WRITE: Option<Scope> = Some(Scope::Write);
pub const AGENTS: Option<Scope> = Some(Scope::Agents);
pub const HOSTING: Option<Scope> = Some(Scope::Hosting);
pub const SOURCES: Option<Scope> = Some(Scope::Sources);
pub const LETTERS: Option<Scope> = Some(Scope::DeadLetters);
pub const METRICS: Option<Scope> = Some(Scope::Metrics);
pub const ADMINS: Option<Scope> = Some(Scope::Admin);
/// No key is allowed: the action requires a user session.
pub const PERSON: Option<Scope> = None;
/// One scope is not enough: the columns of keys are a key without scopes and a key with all of them.
pub const ALL_SCOPES: Option<Scope> = None;

pub const TOKEN: SecretHash = SecretHash([7; 32]);
pub const LATER: Time = Time(9_000);

pub fn a_model() -> ModelAccess {
    ModelAccess { api: ModelApi::OpenAi, base_url: "https://a.b".into(), model: "m".into(), key: None }
}

pub fn post() -> Post {
    Post {
        id: None,
        origin: None,
        author: None,
        room: lobby(),
        text: "hello".into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    }
}

/// Selects the caller's rooms with this project root, or only this room.
pub fn at_root(root: &str, room: Option<RoomId>) -> RoomSelection {
    RoomSelection { room, root: Some(root.into()) }
}
