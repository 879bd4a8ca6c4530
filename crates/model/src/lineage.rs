//! How far a conversation between agents has gone.
//!
//! Owns: depth is bounded, and no agent stands twice in a chain. The hub keeps it; what a client claims can only
//! make it stricter.

use crate::{AgentId, ConversationId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    pub conversation: ConversationId,
    /// How many agents stand between a person and this turn.
    pub depth: u32,
    /// Those agents, and at the end the one whose turn it is.
    pub chain: Vec<AgentId>,
}

/// Why a chain goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineageLimit {
    TooDeep,
    /// The agent has answered in this chain already.
    Twice,
}

impl Lineage {
    /// A person, or somebody outside, addresses an agent.
    pub fn start(conversation: ConversationId, agent: AgentId) -> Self {
        Self { conversation, depth: 0, chain: vec![agent] }
    }

    /// The agent whose turn this is addresses another one.
    pub fn extend_to(&self, agent: &AgentId, deepest: u32) -> Result<Self, LineageLimit> {
        if self.chain.contains(agent) {
            return Err(LineageLimit::Twice);
        }
        if self.depth >= deepest {
            return Err(LineageLimit::TooDeep);
        }
        let chain = self.chain.iter().chain([agent]).cloned().collect();
        Ok(Self { conversation: self.conversation.clone(), depth: self.depth + 1, chain })
    }

    /// A claim from outside: taken where it is stricter than what the hub knows.
    pub fn at_least(self, claimed_depth: u32) -> Self {
        Self { depth: self.depth.max(claimed_depth), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).unwrap()
    }

    fn start() -> Lineage {
        Lineage::start(ConversationId::stored("c"), agent("a"))
    }

    #[test]
    fn a_chain_never_comes_back_to_an_agent() {
        let second = start().extend_to(&agent("b"), 3).unwrap();
        assert_eq!(start().extend_to(&agent("a"), 3), Err(LineageLimit::Twice));
        assert_eq!(second.extend_to(&agent("a"), 3), Err(LineageLimit::Twice));
        assert_eq!(second.extend_to(&agent("b"), 3), Err(LineageLimit::Twice));
    }

    #[test]
    fn a_chain_ends_at_the_deepest_level() {
        let mut lineage = start();
        for next in ["b", "c", "d"] {
            lineage = lineage.extend_to(&agent(next), 3).unwrap();
        }
        assert_eq!((lineage.depth, lineage.chain.len()), (3, 4));
        assert_eq!(lineage.extend_to(&agent("e"), 3), Err(LineageLimit::TooDeep));
        assert_eq!(start().extend_to(&agent("b"), 0), Err(LineageLimit::TooDeep));
    }

    #[test]
    fn a_claim_only_makes_it_stricter() {
        assert_eq!(start().at_least(2).extend_to(&agent("b"), 2), Err(LineageLimit::TooDeep));
        let second = start().extend_to(&agent("b"), 3).unwrap();
        assert_eq!(second.clone().at_least(0), second);
    }
}
