//! Refusals in the broker's words: one sentence in `<type>.error`.

use parlor_model::{EntityKind, Refusal};

/// `agent` is the one that was asked for, where one was.
pub fn sentence(refusal: &Refusal, agent: Option<&str>) -> String {
    let named = |words: &str| agent.map_or_else(|| words.into(), |agent| format!("{words}: {agent}"));
    match refusal {
        Refusal::NotSignedIn => "Must authenticate first".into(),
        Refusal::Forbidden => "Not allowed".into(),
        Refusal::NotFound(EntityKind::Agent) => named("Agent not found"),
        Refusal::NotFound(_) => "Not found".into(),
        Refusal::NotAMember { .. } => "Not a member of this room".into(),
        Refusal::AlreadyExists(EntityKind::Agent) => named("Agent already exists"),
        Refusal::HasEnded(_) => "It is over".into(),
        Refusal::BelongsToAnother(_) => "It belongs to another user".into(),
        Refusal::AlreadyExists(_) => "Already exists".into(),
        Refusal::Invalid(flaws) => {
            let parts: Vec<String> =
                flaws.iter().map(|flaw| format!("{} {}", flaw.field, flaw.rule)).collect();
            parts.join("; ")
        }
        Refusal::TooLarge { limit, .. } => format!("Message exceeds the maximum of {limit} characters"),
        Refusal::Conflict { .. } => "This externalId was used for another message".into(),
        Refusal::LastOneRequired(EntityKind::Subscription) => {
            "Cannot unsubscribe from auto-subscription".into()
        }
        Refusal::LastOneRequired(_) => "It must remain".into(),
        Refusal::GatewayOffline => "Gateway is offline".into(),
        Refusal::WrongCredentials | Refusal::TokenRevoked => "Invalid token".into(),
        Refusal::TooManyUploads { .. } => "Too many uploads".into(),
        Refusal::RateLimited { .. } => "Too many messages".into(),
        Refusal::TooManyConnections => "Too many connections".into(),
        Refusal::AtCapacity => "Server at capacity".into(),
        Refusal::Resync { .. } => "The position is no longer known".into(),
        Refusal::Unavailable => "The hub cannot store anything now; nothing was changed".into(),
    }
}
