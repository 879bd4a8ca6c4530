//! The chain of agents that a message of an agent belongs to: names of its agents, and agents that a client claims.

use crate::Fault;
use crate::read_view::WriterView;
use parlor_model::{Agent, AgentId, Answer, Lineage, MemberId, Room, mention};

/// Names of the agents in a chain, and the agents of the room that a client claims to be in it.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    names: Vec<(AgentId, Box<str>)>,
    claimed: Vec<AgentId>,
}

impl Chain {
    /// Loads the agents of a lineage, and resolves the claimed names among the members of the room.
    pub fn load(
        lineage: Option<&Lineage>,
        claimed_names: &[Box<str>],
        room: &Room,
        view: &mut WriterView<'_>,
    ) -> Result<Self, Fault> {
        let mut claimed = Vec::new();
        if !claimed_names.is_empty() {
            let named = mention::resolve("", claimed_names, &view.mentionable(room)?);
            claimed.extend(named.into_iter().filter_map(|mention| match mention.member {
                MemberId::Agent(agent) => Some(agent),
                MemberId::User(_) => None,
            }));
        }
        let mut names = Vec::new();
        for id in lineage.iter().flat_map(|lineage| &lineage.chain).chain(&claimed) {
            let agent = match view.agent_named_in(&room.id, id)? {
                Some(agent) => Some(agent),
                None => view.agent(id)?,
            };
            names.extend(agent.map(|agent| (id.clone(), agent.name.clone())));
        }
        Ok(Self { names, claimed })
    }

    /// Adds the claims of a client to a lineage. Claims can only make a lineage longer.
    pub fn with_claims(&self, lineage: Lineage, claimed_depth: u32) -> Lineage {
        lineage.including(&self.claimed).at_least(claimed_depth)
    }

    /// The answer of an agent that ends the lineage; without a lineage, a message outside any chain.
    pub fn answer(&self, agent: &Agent, lineage: Option<&Lineage>) -> Box<Answer> {
        let name = |id: &AgentId| match self.names.iter().find(|(known, _)| known == id) {
            Some((_, name)) => name.clone(),
            None if *id == agent.id => agent.name.clone(),
            None => id.as_str().into(),
        };
        Box::new(Answer {
            owner: agent.owner.clone(),
            depth: lineage.map_or(0, |lineage| lineage.depth.saturating_add(1)),
            chain: lineage.iter().flat_map(|lineage| &lineage.chain).map(name).collect(),
        })
    }
}
