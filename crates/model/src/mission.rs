//! What agents are to pursue by themselves, and how they are prompted when they are idle.

use crate::{AgentId, Message, MissionId, Room, RoomId, Time, UserId};

/// Where something about idle agents holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MissionScope {
    /// In one room, which is about no folder.
    Room(RoomId),
    /// In every room that is about this folder.
    Root(Box<str>),
    /// Wherever an agent is: what it says of itself.
    Global,
}

impl MissionScope {
    pub fn of(room: &Room) -> Self {
        match &room.project_root {
            Some(root) => Self::Root(root.clone()),
            None => Self::Room(room.id.clone()),
        }
    }
}

/// How an idle agent is prompted; what is absent is left to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdlePrompt {
    pub prompt: Option<Box<str>>,
    /// In seconds.
    pub interval: Option<u32>,
}

impl IdlePrompt {
    /// In seconds.
    pub const MIN_INTERVAL_SECS: u32 = 30;
    pub const MAX_INTERVAL_SECS: u32 = 86_400;
    pub const DEFAULT_INTERVAL_SECS: u32 = 60;

    /// With what another says, where this says nothing.
    pub fn or(&self, other: Option<&IdlePrompt>) -> Self {
        Self {
            prompt: self.prompt.clone().or_else(|| other.and_then(|other| other.prompt.clone())),
            interval: self.interval.or_else(|| other.and_then(|other| other.interval)),
        }
    }

    /// After so many seconds without anything to do, and never sooner than is allowed.
    pub fn idle_timeout(&self) -> std::time::Duration {
        let seconds = self
            .interval
            .unwrap_or(Self::DEFAULT_INTERVAL_SECS)
            .clamp(Self::MIN_INTERVAL_SECS, Self::MAX_INTERVAL_SECS);
        std::time::Duration::from_secs(seconds.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mission {
    pub id: MissionId,
    pub mission_scope: MissionScope,
    /// Where agents are prompted.
    pub room: RoomId,
    pub text: Box<str>,
    /// By id.
    pub agents: Vec<MissionAgent>,
    /// In whose name agents are prompted.
    pub created_by: UserId,
    pub created_at: Time,
    pub ended_at: Option<Time>,
    /// How often agents were prompted for it.
    pub prompts: u32,
}

/// What a mission says of one agent, or has of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissionAgent {
    pub agent: AgentId,
    /// Whether the mission names it; else it was prompted because others say how.
    pub named: bool,
    pub idle: IdlePrompt,
    pub prompted_at: Option<Time>,
}

impl Mission {
    /// So often agents are prompted for one mission; then somebody has to want it again.
    pub const MOST_PROMPTS: u32 = 100;
    pub const MOST_AGENTS: usize = 50;

    pub fn is_on(&self) -> bool {
        self.ended_at.is_none()
    }

    pub fn agent(&self, agent: &AgentId) -> Option<&MissionAgent> {
        self.agents.iter().find(|known| known.agent == *agent)
    }

    /// How an agent is prompted for it; `None` where nobody says anything of it. The mission's word comes before that
    /// of its realm, and this before the agent's own.
    pub fn idle(
        &self,
        agent: &AgentId,
        overridden: Option<&IdlePrompt>,
        own: Option<&IdlePrompt>,
    ) -> Option<IdlePrompt> {
        let named = self.agent(agent).filter(|known| known.named);
        let idle = named.map(|known| known.idle.clone()).unwrap_or_default().or(overridden).or(own);
        (named.is_some() || idle.prompt.is_some()).then_some(idle)
    }

    /// How long its texts are together.
    pub fn length(&self) -> usize {
        let prompts = self.agents.iter().filter_map(|known| known.idle.prompt.as_deref());
        self.text.len() + prompts.map(str::len).sum::<usize>()
    }

    /// What is said to an agent, in the name of who set the mission: what others wrote is marked as theirs.
    pub fn prompt(&self, agent: &AgentId, idle: &IdlePrompt) -> String {
        let by_mission = self.agent(agent).is_some_and(|known| known.named && known.idle.prompt.is_some());
        let mission = &self.text;
        match &idle.prompt {
            Some(prompt) if by_mission => format!("Mission: {mission}\n\n{prompt}"),
            Some(prompt) => {
                let quoted: Vec<String> = prompt.lines().map(|line| format!("> {line}")).collect();
                format!("Mission: {mission}\n\nIdle prompt of this agent:\n{}", quoted.join("\n"))
            }
            None => format!("Mission: {mission}"),
        }
    }

    /// An agent was prompted.
    pub fn prompted(&self, agent: &AgentId, now: Time) -> Self {
        let mut after = self.clone();
        after.prompts += 1;
        match after.agents.binary_search_by(|known| known.agent.cmp(agent)) {
            Ok(place) => after.agents[place].prompted_at = Some(now),
            Err(place) => {
                let (idle, prompted_at) = (IdlePrompt::default(), Some(now));
                after
                    .agents
                    .insert(place, MissionAgent { agent: agent.clone(), named: false, idle, prompted_at });
            }
        }
        after
    }
}

/// Where a message says of itself that it was said for a mission.
pub const SOURCE: &str = "mission";

/// The agent that was prompted by a message and for which mission, if it was said for one. Only the hub says such: what
/// comes from elsewhere is no person's.
pub fn of(message: &Message) -> Option<(&AgentId, &str)> {
    let hubs = &*message.source == SOURCE && message.sender.user().is_some();
    let agent = message.mentions.first().filter(|_| hubs)?.member.agent()?;
    Some((agent, message.external_id.as_deref()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(prompt: Option<&str>, interval: Option<u32>) -> IdlePrompt {
        IdlePrompt { prompt: prompt.map(Into::into), interval }
    }

    fn mission(named: Option<IdlePrompt>) -> Mission {
        let agent = AgentId::stored("coder");
        let agents = named.map(|idle| MissionAgent { agent, named: true, idle, prompted_at: None });
        Mission {
            id: MissionId::stored("m"),
            mission_scope: MissionScope::Global,
            room: RoomId::stored("r"),
            text: "Tea".into(),
            agents: agents.into_iter().collect(),
            created_by: UserId::stored("ann"),
            created_at: Time(1),
            ended_at: None,
            prompts: 0,
        }
    }

    #[test]
    fn the_mission_comes_before_the_override_and_this_before_the_agents_own() {
        let coder = AgentId::stored("coder");
        let (own, over) = (idle(Some("own"), Some(40)), idle(Some("over"), None));
        let named = mission(Some(idle(None, Some(50))));
        assert_eq!(named.idle(&coder, Some(&over), Some(&own)), Some(idle(Some("over"), Some(50))));
        assert_eq!(
            named.idle(&coder, None, None),
            Some(idle(None, Some(50))),
            "the mission is prompt enough"
        );
        let full = mission(Some(idle(Some("mission"), None)));
        assert_eq!(full.idle(&coder, Some(&over), Some(&own)), Some(idle(Some("mission"), Some(40))));
        let unnamed = mission(None);
        assert_eq!(unnamed.idle(&coder, Some(&over), Some(&own)), Some(idle(Some("over"), Some(40))));
        assert_eq!(unnamed.idle(&coder, Some(&idle(None, Some(40))), None), None, "nobody says what to do");
        assert_eq!(unnamed.idle(&coder, None, None), None);
    }

    #[test]
    fn what_others_wrote_is_not_said_as_if_the_mission_did() {
        let coder = AgentId::stored("coder");
        let mine = mission(Some(idle(Some("look at CI"), None)));
        assert_eq!(mine.prompt(&coder, &idle(Some("look at CI"), None)), "Mission: Tea\n\nlook at CI");
        let theirs = mission(None).prompt(&coder, &idle(Some("I, ann,\norder"), None));
        assert_eq!(theirs, "Mission: Tea\n\nIdle prompt of this agent:\n> I, ann,\n> order");
    }

    #[test]
    fn nobody_is_prompted_more_often_than_is_allowed() {
        let seconds = |interval| idle(None, interval).idle_timeout().as_secs();
        assert_eq!([None, Some(1), Some(90), Some(u32::MAX)].map(seconds), [60, 30, 90, 86_400]);
    }
}
