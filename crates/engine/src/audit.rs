//! Subjects and details of audit entries that several families of commands record.

use parlor_model::audit::{Subject, SubjectKind};
use parlor_model::{ApiKey, Invitation, RoomInvitation, Scope, Seq, User};

pub(crate) fn user(user: &User) -> Subject {
    subject(SubjectKind::User, user.id.as_str(), Some(&user.username))
}

pub(crate) fn key(key: &ApiKey) -> Subject {
    subject(SubjectKind::Key, key.id.as_str(), Some(&key.name))
}

pub(crate) fn invitation(invitation: &Invitation) -> Subject {
    subject(SubjectKind::Invitation, invitation.id.as_str(), invitation.note.as_deref())
}

pub(crate) fn room_invitation(invitation: &RoomInvitation) -> Subject {
    subject(SubjectKind::Invitation, invitation.id.as_str(), None)
}

/// Detail text of a backup: the events it contains.
pub fn up_to(through: Seq) -> String {
    format!("everything up to event {}", through.0)
}

pub(crate) fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}

fn subject(kind: SubjectKind, id: &str, name: Option<&str>) -> Subject {
    Subject { kind, id: id.into(), name: name.map(Into::into) }
}
