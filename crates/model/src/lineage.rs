//! Lineage: the chain of agents that leads from a person to a run.
//!
//! Owns: the depth limit, and the rule that no agent appears twice in a chain. The hub computes the lineage;
//! a depth claimed by a client can only raise it.

use crate::{AgentId, ConversationId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// Shared by all runs that one trigger caused.
    pub conversation: ConversationId,
    /// Number of agents between the person and this run; 0 if a person addressed the agent.
    pub depth: u32,
    /// Agents from the first one addressed to the agent of this run, which is last.
    pub chain: Vec<AgentId>,
}

/// Reason why a chain of agents cannot be extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineageLimit {
    TooDeep,
    /// The agent is already part of the chain.
    Twice,
}

impl Lineage {
    /// Starts a chain: a person or an external source addresses `agent`.
    pub fn start(conversation: ConversationId, agent: AgentId) -> Self {
        Self { conversation, depth: 0, chain: vec![agent] }
    }

    /// Extends the chain: the agent of this run addresses `agent`. A chain has at most `max_answers` answers, of
    /// which the run at depth 0 gives the first.
    pub fn extend_to(&self, agent: &AgentId, max_answers: u32) -> Result<Self, LineageLimit> {
        if self.chain.contains(agent) {
            return Err(LineageLimit::Twice);
        }
        if self.depth.saturating_add(1) >= max_answers {
            return Err(LineageLimit::TooDeep);
        }
        let chain = self.chain.iter().chain([agent]).cloned().collect();
        Ok(Self { conversation: self.conversation.clone(), depth: self.depth + 1, chain })
    }

    /// Continues the chain with a message from outside the hub: an author that is not running under the hub
    /// answered the agent of this run. The author takes one level of depth; `agent` is set if it is an agent
    /// of the hub. At the maximum depth the result cannot be extended to any agent.
    pub fn continue_outside(&self, agent: Option<&AgentId>, max_depth: u32) -> Self {
        let joined = agent.filter(|agent| !self.chain.contains(agent));
        Self {
            conversation: self.conversation.clone(),
            depth: self.depth.saturating_add(1).min(max_depth),
            chain: self.chain.iter().chain(joined).cloned().collect(),
        }
    }

    /// Adds agents that a client claims to be in the chain. Each adds one level of depth.
    pub fn including(self, claimed: &[AgentId]) -> Self {
        let missing = claimed.iter().filter(|agent| !self.chain.contains(agent)).cloned();
        let chain: Vec<AgentId> = missing.chain(self.chain.iter().cloned()).collect();
        let depth = u32::try_from(chain.len().saturating_sub(1)).unwrap_or(u32::MAX);
        if chain.len() == self.chain.len() {
            return self;
        }
        Self { depth: self.depth.max(depth), chain, ..self }
    }

    /// Raises the depth to a value claimed by a client. A lower claim has no effect.
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
    fn an_agent_appears_in_a_chain_only_once() {
        let second = start().extend_to(&agent("b"), 3).unwrap();
        assert_eq!(start().extend_to(&agent("a"), 3), Err(LineageLimit::Twice));
        assert_eq!(second.extend_to(&agent("a"), 3), Err(LineageLimit::Twice));
        assert_eq!(second.extend_to(&agent("b"), 3), Err(LineageLimit::Twice));
    }

    #[test]
    fn a_chain_has_a_maximum_number_of_answers() {
        let mut lineage = start();
        for next in ["b", "c"] {
            lineage = lineage.extend_to(&agent(next), 3).unwrap();
        }
        assert_eq!((lineage.depth, lineage.chain.len()), (2, 3));
        assert_eq!(lineage.extend_to(&agent("d"), 3), Err(LineageLimit::TooDeep));
        assert_eq!(start().extend_to(&agent("b"), 1), Err(LineageLimit::TooDeep));
    }

    #[test]
    fn an_author_outside_the_hub_takes_one_level_of_depth() {
        let outside = start().continue_outside(None, 3);
        assert_eq!((outside.depth, &outside.chain[..]), (1, &[agent("a")][..]));
        let known = start().continue_outside(Some(&agent("b")), 3);
        assert_eq!((known.depth, &known.chain[..]), (1, &[agent("a"), agent("b")][..]));
        assert_eq!(
            known.continue_outside(Some(&agent("a")), 3).chain,
            known.chain,
            "no agent is listed twice"
        );
        assert_eq!(known.extend_to(&agent("a"), 3), Err(LineageLimit::Twice));
        let mut deep = start();
        for _ in 0..9 {
            deep = deep.continue_outside(None, 3);
        }
        assert_eq!(deep.extend_to(&agent("z"), 3), Err(LineageLimit::TooDeep));
    }

    #[test]
    fn claimed_agents_are_in_the_chain_and_take_a_level_each() {
        let claimed = start().including(&[agent("b"), agent("a"), agent("c")]);
        assert_eq!((claimed.depth, &claimed.chain[..]), (2, &[agent("b"), agent("c"), agent("a")][..]));
        assert_eq!(claimed.extend_to(&agent("b"), 9), Err(LineageLimit::Twice));
        assert_eq!(start().including(&[agent("a")]), start());
    }

    #[test]
    fn a_claimed_depth_can_only_raise_the_depth() {
        assert_eq!(start().at_least(2).extend_to(&agent("b"), 2), Err(LineageLimit::TooDeep));
        let second = start().extend_to(&agent("b"), 3).unwrap();
        assert_eq!(second.clone().at_least(0), second);
    }
}
