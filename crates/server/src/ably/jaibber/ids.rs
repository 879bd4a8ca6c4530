//! Ids of the agents and gateways of Jaibber clients.
//!
//! An id follows from its user and name, so that an agent that is created again and a connection that replaces a lost
//! one have the same id. It also follows from a secret of the hub, so that other users cannot register the id first.

use crate::auth::secrets::random_bytes;
use hmac::{Hmac, KeyInit, Mac};
use parlor_model::{AgentId, EntityKind, GatewayId, Refusal, UserId};
use sha2::Sha256;

/// Kind of the agents, shown by clients of other protocols. The ids of their gateways begin with it.
pub const KIND: &str = "jaibber";
/// Bytes of an id that follow from the secret.
const DIGEST_BYTES: usize = 6;

pub struct DerivedIds(Hmac<Sha256>);

impl DerivedIds {
    pub fn new(hub_secret: &[u8]) -> Self {
        let hub = <Hmac<Sha256> as KeyInit>::new_from_slice(hub_secret);
        let derived = hub.expect("HMAC takes keys of any length").chain_update(b"parlor jaibber ids 1");
        let key = derived.finalize().into_bytes();
        Self(<Hmac<Sha256> as KeyInit>::new_from_slice(&key).expect("HMAC takes keys of any length"))
    }

    /// Id of a user's agent with this name.
    pub fn agent(&self, user: &UserId, name: &str) -> Result<AgentId, Refusal> {
        agent_id(name, self.digest(&["agent", user.as_str(), &name.to_lowercase()]))
    }

    /// Id of the gateway of a user's agent on a machine.
    pub fn gateway(&self, user: &UserId, agent: &str, machine: &str) -> Result<GatewayId, Refusal> {
        gateway_id(self.digest(&["gateway", user.as_str(), &agent.to_lowercase(), machine]))
    }

    fn digest(&self, parts: &[&str]) -> [u8; DIGEST_BYTES] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        let tag: [u8; 32] = mac.finalize().into_bytes().into();
        std::array::from_fn(|index| tag[index])
    }
}

/// Another id for an agent with this name, if the derived id belongs to another user.
pub fn another_agent(name: &str) -> Result<AgentId, Refusal> {
    agent_id(name, random_bytes())
}

/// Another id for a gateway, if the derived id belongs to another user.
pub fn another_gateway() -> Result<GatewayId, Refusal> {
    gateway_id(random_bytes())
}

fn agent_id(name: &str, digest: [u8; DIGEST_BYTES]) -> Result<AgentId, Refusal> {
    let readable: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    let readable = if readable.is_empty() { "agent" } else { &readable };
    let id = format!("{readable}-{}", hex(digest));
    AgentId::parse(&id).map_err(|_| Refusal::NotFound(EntityKind::Agent))
}

fn gateway_id(digest: [u8; DIGEST_BYTES]) -> Result<GatewayId, Refusal> {
    GatewayId::parse(&format!("{KIND}-{}", hex(digest))).map_err(|_| Refusal::NotFound(EntityKind::Gateway))
}

fn hex(digest: [u8; DIGEST_BYTES]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_user_name_and_the_secret_of_the_hub() {
        let (ids, ann) = (DerivedIds::new(b"secret"), UserId::stored("ann"));
        let id = ids.agent(&ann, "Coder 2").unwrap();
        assert!(id.as_str().starts_with("coder2-"), "{id}");
        assert_eq!(ids.agent(&ann, "coder 2").unwrap(), id);
        assert_ne!(ids.agent(&UserId::stored("bob"), "Coder 2").unwrap(), id);
        assert_ne!(DerivedIds::new(b"another").agent(&ann, "Coder 2").unwrap(), id);
        assert_ne!(another_agent("Coder 2").unwrap(), another_agent("Coder 2").unwrap());
        let gateway = ids.gateway(&ann, "Coder", "box").unwrap();
        assert_eq!(ids.gateway(&ann, "coder", "box").unwrap(), gateway);
        assert_ne!(ids.gateway(&ann, "Coder", "other box").unwrap(), gateway);
        assert_ne!(DerivedIds::new(b"another").gateway(&ann, "Coder", "box").unwrap(), gateway);
    }
}
