//! Maps refusals to AgentIM error codes (WebSocket) and HTTP statuses (REST). A code never changes its
//! meaning.

use super::fields;
use parlor_model::{EntityKind, FieldError, Refusal};

/// Returns code and message of a `server:error` frame.
pub fn frame(refusal: &Refusal) -> (&'static str, String) {
    let (code, message): (_, &str) = match refusal {
        Refusal::NotSignedIn => ("NOT_AUTHENTICATED", "Please authenticate first"),
        Refusal::Forbidden => ("PERMISSION_DENIED", "You are not allowed to do this"),
        Refusal::NotFound(EntityKind::Room) => ("ROOM_NOT_FOUND", "Room not found"),
        Refusal::NotFound(EntityKind::Gateway) => ("GATEWAY_NOT_FOUND", "Gateway not found"),
        Refusal::NotFound(thing) => return ("INVALID_REQUEST", format!("{} not found", name(*thing))),
        Refusal::NotAMember { .. } => ("NOT_A_MEMBER", "You are not a member of this room"),
        Refusal::Invalid(errors) if errors.is_empty() => ("INVALID_MESSAGE", "Invalid message format"),
        Refusal::Invalid(errors) => return ("INVALID_MESSAGE", field_errors(errors)),
        Refusal::TooLarge { limit, .. } => {
            return ("MESSAGE_TOO_LARGE", format!("Message exceeds the maximum of {limit} characters"));
        }
        Refusal::Conflict { .. } => ("INVALID_MESSAGE", "This clientMessageId was used for another message"),
        Refusal::AlreadyExists(EntityKind::Approval) => ("INVALID_REQUEST", DECIDED),
        Refusal::AlreadyExists(thing) => {
            return ("INVALID_REQUEST", format!("{} already exists", name(*thing)));
        }
        Refusal::BelongsToAnother(thing) => {
            return ("PERMISSION_DENIED", format!("{} ID belongs to another user", name(*thing)));
        }
        Refusal::HasEnded(thing) => return ("INVALID_REQUEST", ended(*thing)),
        Refusal::LastOneRequired(thing) => return ("INVALID_REQUEST", last_one_required(*thing).into()),
        Refusal::NoSubscribers => ("INVALID_REQUEST", NO_SUBSCRIBERS),
        Refusal::GatewayOffline => ("GATEWAY_OFFLINE", "Gateway is offline"),
        Refusal::WrongCredentials | Refusal::TokenRevoked => ("INVALID_TOKEN", "Invalid token"),
        Refusal::TooManyUploads { limit } => return ("RATE_LIMITED", too_many_uploads(*limit)),
        Refusal::RateLimited { .. } => ("RATE_LIMITED", "Too many messages"),
        Refusal::TooManyConnections => ("RATE_LIMITED", "Too many connections"),
        Refusal::AtCapacity => ("RATE_LIMITED", "Server at capacity"),
        Refusal::Resync { .. } => ("INVALID_REQUEST", "The position is no longer known"),
        Refusal::Unavailable => ("INTERNAL_ERROR", "The hub cannot store anything now; nothing was changed"),
    };
    (code, message.into())
}

/// Returns HTTP status, message and, for errors that programs must distinguish, a code.
pub fn status(refusal: &Refusal) -> (u16, String, Option<&'static str>) {
    let without_code = |status, message: &str| (status, message.to_owned(), None);
    match refusal {
        Refusal::NotSignedIn => without_code(401, "Unauthorized"),
        Refusal::WrongCredentials => without_code(401, "Invalid credentials"),
        Refusal::TokenRevoked => without_code(401, "Refresh token revoked or invalid"),
        Refusal::Forbidden => without_code(403, "Forbidden"),
        // Same response as for an unknown room, so that it does not reveal whether the room exists.
        Refusal::NotAMember { .. } => without_code(404, "Room not found"),
        // Same response for an entity of another user and for an unknown one.
        Refusal::NotFound(thing) | Refusal::BelongsToAnother(thing) => {
            without_code(404, &format!("{} not found", name(*thing)))
        }
        Refusal::AlreadyExists(EntityKind::User) => without_code(409, "Username already taken"),
        Refusal::AlreadyExists(EntityKind::Member) => without_code(409, "Member already in room"),
        Refusal::AlreadyExists(EntityKind::Approval) => without_code(409, DECIDED),
        Refusal::AlreadyExists(thing) => without_code(409, &format!("{} already exists", name(*thing))),
        Refusal::Conflict { .. } => {
            (409, "This clientMessageId was used for another message".into(), Some("INVALID_MESSAGE"))
        }
        Refusal::HasEnded(thing) => (409, ended(*thing), Some("HAS_ENDED")),
        Refusal::LastOneRequired(thing) => without_code(409, last_one_required(*thing)),
        Refusal::Invalid(_) => without_code(400, "Validation failed"),
        Refusal::TooLarge { limit, .. } => {
            (413, format!("Message exceeds the maximum of {limit} characters"), Some("MESSAGE_TOO_LARGE"))
        }
        Refusal::TooManyUploads { limit } => (429, too_many_uploads(*limit), Some("RATE_LIMITED")),
        Refusal::RateLimited { .. } | Refusal::TooManyConnections | Refusal::AtCapacity => {
            (429, "Too many requests".into(), Some("RATE_LIMITED"))
        }
        Refusal::NoSubscribers => (409, NO_SUBSCRIBERS.into(), Some("NO_SUBSCRIBERS")),
        Refusal::GatewayOffline => (503, "Gateway is offline".into(), Some("GATEWAY_OFFLINE")),
        Refusal::Resync { .. } => (410, "The position is no longer known; start over".into(), Some("RESYNC")),
        Refusal::Unavailable => {
            (503, "The hub cannot store anything now; nothing was changed".into(), Some("UNAVAILABLE"))
        }
    }
}

const NO_SUBSCRIBERS: &str = "No mailbox subscribes to the path of this message; the dead letter stays";

fn ended(thing: EntityKind) -> String {
    format!("{} has ended and cannot be continued", name(thing))
}
const DECIDED: &str = "This permission request already exists or has already been decided";

fn name(thing: EntityKind) -> &'static str {
    match thing {
        EntityKind::User => "User",
        EntityKind::Room => "Room",
        EntityKind::Member => "Member",
        EntityKind::Message => "Message",
        EntityKind::Pin => "Pin",
        EntityKind::Bookmark => "Bookmark",
        EntityKind::Agent => "Agent",
        EntityKind::Gateway => "Gateway",
        EntityKind::Key => "API key",
        EntityKind::SignIn => "Session",
        EntityKind::SetupLink => "Setup link",
        EntityKind::Invitation => "Invitation",
        EntityKind::Pairing => "Pairing code",
        EntityKind::SecondFactor => "Second factor",
        EntityKind::Subscription => "Subscription",
        EntityKind::Upload => "File",
        EntityKind::Task => "Task",
        EntityKind::Run => "Run",
        EntityKind::Approval => "Permission request",
        EntityKind::ApprovalRule => "Rule",
        EntityKind::Router => "Router",
        EntityKind::Service => "Service agent",
        EntityKind::Plan => "Pending plan",
        EntityKind::ProjectRoot => "Folder",
        EntityKind::Mission => "Active mission",
        EntityKind::Override => "Override",
        EntityKind::DeadLetter => "Dead letter",
    }
}

fn too_many_uploads(limit: usize) -> String {
    format!("You already have {limit} files that are not attached to a message; send one, or try again later")
}

fn last_one_required(thing: EntityKind) -> &'static str {
    match thing {
        EntityKind::User => "The last admin must remain",
        _ => "The room must keep an owner; transfer the room to another member first",
    }
}

/// Returns the violated rules in one line.
pub fn field_errors(errors: &[FieldError]) -> String {
    let parts = errors.iter().map(|error| {
        let (field, rule) = fields::translate(error);
        format!("{field} {rule}")
    });
    parts.collect::<Vec<_>>().join("; ")
}
