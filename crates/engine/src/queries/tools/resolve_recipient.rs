//! Resolves the recipient of a message that an agent writes to a path.
//!
//! Owns: which texts are paths and which are ids of agents. An agent that the sender cannot reach is treated as a
//! missing one, so that the answer does not reveal whether it exists.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ResolveRecipient;
use parlor_model::{AgentId, Field, Mailbox, MemberId, Path, Refusal};

/// First segments of paths that are never ids of agents.
const DOMAINS: [&str; 7] = ["agent", "room", "slack", "email", "webhook", "ably", "custom"];

impl Query for ResolveRecipient {
    type Facts = Path;
    type Answer = Path;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        Path::parse(&self.to).map(drop).map_err(|_| invalid())
    }

    /// Allowed for the owner of the agent, and for programs of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Path, PermitError> {
        let own = view.as_agent(caller, &Mailbox::of(self.agent.clone()))?;
        let reaches = |id: &AgentId| -> Result<bool, Fault> {
            let Some(agent) = view.agent(id)? else { return Ok(false) };
            let owner = &own.agent.owner;
            if agent.owner == *owner || agent.is_shared_with(owner) {
                return Ok(true);
            }
            view.store.share_a_room(&MemberId::User(owner.clone()), &MemberId::Agent(id.clone()))
        };
        Ok(resolve(&self.to, reaches)?.ok_or_else(invalid)?)
    }

    fn answer(&self, path: Path, _store: &mut dyn Snapshot, _limits: &Limits) -> Result<Path, Fault> {
        Ok(path)
    }
}

fn invalid() -> Refusal {
    Refusal::invalid(Field::Path, "must be the id of an agent or a path")
}

/// The path of a recipient, or `None` if it is neither a path nor an id.
fn resolve(to: &str, reaches: impl FnOnce(&AgentId) -> Result<bool, Fault>) -> Result<Option<Path>, Fault> {
    let Ok(path) = Path::parse(to) else { return Ok(None) };
    if path.as_str().split_once('/').is_some_and(|(first, _)| DOMAINS.contains(&first)) {
        return Ok(Some(path));
    }
    let agent = AgentId::parse(path.as_str()).ok();
    Ok(match agent {
        Some(agent) if reaches(&agent)? => Some(Path::of_agent(&agent)),
        _ if path.as_str().contains('/') => Some(path),
        Some(agent) => Some(Path::of_agent(&agent)),
        None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `existing` are the agents that the sender can reach.
    #[track_caller]
    fn check(to: &str, existing: &[&str], expected: Option<&str>) {
        let found = resolve(to, |id| Ok(existing.contains(&id.as_str()))).unwrap();
        assert_eq!(found.as_ref().map(Path::as_str), expected, "{to} with the agents {existing:?}");
    }

    #[test]
    fn a_recipient_is_a_path_or_an_agent() {
        for path in [
            "agent/coder",
            "agent/**",
            "room/lobby",
            "slack/team/#general",
            "email/a@b.c/d@e.f",
            "webhook/ci/done",
            "ably/x",
            "custom/any thing",
        ] {
            check(path, &[], Some(path));
            check(path, &[path], Some(path));
        }
        check("researcher", &["researcher"], Some("agent/researcher"));
        check("researcher", &[], Some("agent/researcher"));
        check("researcher/analyzer", &["researcher/analyzer"], Some("agent/researcher/analyzer"));
        check("/researcher/analyzer/", &["researcher/analyzer"], Some("agent/researcher/analyzer"));
        check("researcher/analyzer", &["researcher"], Some("researcher/analyzer"));
        check("sms/+49 1", &[], Some("sms/+49 1"));
        check("system/**", &[], Some("system/**"));
    }

    #[test]
    fn the_name_of_a_domain_alone_is_an_agent() {
        check("slack", &["slack"], Some("agent/slack"));
        check("agent", &[], Some("agent/agent"));
        check("agent/", &[], Some("agent/agent"));
    }

    #[test]
    fn other_texts_are_refused() {
        for to in ["", "/", "two words", "*", "a\nb/c", &"x/".repeat(33), &"x".repeat(2000)] {
            check(to, &[], None);
        }
    }
}
