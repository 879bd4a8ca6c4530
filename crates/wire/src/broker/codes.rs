//! Maps refusals to the error message of a broker frame `<type>.error`.

use super::fields;
use parlor_model::{EntityKind, Refusal};

/// Returns the error message. `agent` is the agent id of the request, if it has one.
pub fn sentence(refusal: &Refusal, agent: Option<&str>) -> String {
    let with_agent = |text: &str| agent.map_or_else(|| text.into(), |agent| format!("{text}: {agent}"));
    match refusal {
        Refusal::NotSignedIn => "Must authenticate first".into(),
        Refusal::Forbidden => "Not allowed".into(),
        Refusal::NotFound(EntityKind::Agent) => with_agent("Agent not found"),
        Refusal::NotFound(_) => "Not found".into(),
        Refusal::NotAMember { .. } => "Not a member of this room".into(),
        Refusal::AlreadyExists(EntityKind::Agent) => with_agent("Agent already exists"),
        Refusal::HasEnded(_) => "It has ended".into(),
        Refusal::BelongsToAnother(_) => "It belongs to another user".into(),
        Refusal::AlreadyExists(_) => "Already exists".into(),
        Refusal::Invalid(errors) => {
            let parts = errors.iter().map(|error| {
                let (field, rule) = fields::translate(error);
                format!("{field} {rule}")
            });
            parts.collect::<Vec<_>>().join("; ")
        }
        Refusal::TooLarge { limit, .. } => format!("Message exceeds the maximum of {limit} characters"),
        Refusal::Conflict { .. } => "This externalId was used for another message".into(),
        Refusal::LastOneRequired(EntityKind::Subscription) => {
            "Cannot unsubscribe from auto-subscription".into()
        }
        Refusal::LastOneRequired(_) => "It cannot be removed".into(),
        Refusal::NoSubscribers => "No mailbox subscribes to the path of this message".into(),
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
