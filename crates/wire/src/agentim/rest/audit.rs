//! Response bodies of the audit log.

use crate::time::iso;
use parlor_model::audit::{Actor, AuditRecord};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AuditPage<'a> {
    /// Entries, newest first.
    pub items: Vec<AuditEntry<'a>>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl<'a> AuditPage<'a> {
    pub fn new(notes: &'a [AuditRecord], more: bool) -> Self {
        let next_cursor = notes.last().filter(|_| more).map(|last| last.id.to_string());
        Self { items: notes.iter().map(AuditEntry::from).collect(), has_more: more, next_cursor }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry<'a> {
    pub id: String,
    #[schema(format = DateTime)]
    pub at: String,
    pub actor: AuditActor<'a>,
    pub action: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub subject: Option<AuditSubject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub address: Option<String>,
    /// Number of occurrences, if repetitions are counted in one entry.
    pub count: u32,
    /// Time of the last occurrence.
    #[schema(format = DateTime)]
    pub last_at: String,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AuditActor<'a> {
    /// `user`, `key`, `operator` or `nobody`.
    pub kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub key_id: Option<&'a str>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct AuditSubject<'a> {
    /// `user`, `agent`, `room`, `key`, `invitation` or `router`.
    pub kind: &'a str,
    pub id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<&'a str>,
}

impl<'a> From<&'a AuditRecord> for AuditEntry<'a> {
    fn from(record: &'a AuditRecord) -> Self {
        let note = &record.note;
        let subject = note.subject.as_ref().map(|subject| AuditSubject {
            kind: subject.kind.as_str(),
            id: &subject.id,
            name: subject.name.as_deref(),
        });
        Self {
            id: record.id.to_string(),
            at: iso(note.at),
            actor: (&note.actor).into(),
            action: note.action.as_str(),
            subject,
            detail: note.detail.as_deref(),
            address: note.address.map(|address| address.to_string()),
            count: record.count,
            last_at: iso(record.last_at),
        }
    }
}

impl<'a> From<&'a Actor> for AuditActor<'a> {
    fn from(actor: &'a Actor) -> Self {
        let with_user = |kind, id: &'a parlor_model::UserId, name: &'a str, key_id| Self {
            kind,
            id: Some(id.as_str()),
            name: Some(name),
            key_id,
        };
        let without_user = |kind| Self { kind, id: None, name: None, key_id: None };
        match actor {
            Actor::Nobody => without_user("nobody"),
            Actor::Operator => without_user("operator"),
            Actor::Person { id, name } => with_user("user", id, name, None),
            Actor::Program { id, name, key } => with_user("key", id, name, Some(key.as_str())),
        }
    }
}
