//! Missions: goals that agents pursue without further messages, and the prompts that idle agents get.
//!
//! Owns: which idle prompt applies to an agent, and the text of the prompt.

use crate::{AgentId, Message, MissionId, Room, RoomId, Time, UserId};
use serde::{Deserialize, Serialize};

/// Scope in which a mission or an idle prompt applies.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MissionScope {
    /// One room that has no project root.
    Room(RoomId),
    /// Every room with this project root.
    Root(Box<str>),
    /// All rooms; used for the agent's own idle prompt.
    Global,
}

impl MissionScope {
    /// Returns the scope of a room: its project root if it has one, else the room itself.
    pub fn of(room: &Room) -> Self {
        match &room.project_root {
            Some(root) => Self::Root(root.clone()),
            None => Self::Room(room.id.clone()),
        }
    }
}

/// Text and interval for prompting an idle agent. A field that is `None` is filled from a wider scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IdlePrompt {
    pub prompt: Option<Box<str>>,
    /// Idle time before each prompt, in seconds.
    pub interval: Option<u32>,
}

impl IdlePrompt {
    pub const MIN_INTERVAL_SECS: u32 = 30;
    pub const MAX_INTERVAL_SECS: u32 = 86_400;
    pub const DEFAULT_INTERVAL_SECS: u32 = 60;

    /// Fills unset fields from `other`.
    pub fn or(&self, other: Option<&IdlePrompt>) -> Self {
        Self {
            prompt: self.prompt.clone().or_else(|| other.and_then(|other| other.prompt.clone())),
            interval: self.interval.or_else(|| other.and_then(|other| other.interval)),
        }
    }

    /// Returns the idle time before a prompt: the interval or its default, limited to the allowed range.
    pub fn idle_timeout(&self) -> std::time::Duration {
        let seconds = self
            .interval
            .unwrap_or(Self::DEFAULT_INTERVAL_SECS)
            .clamp(Self::MIN_INTERVAL_SECS, Self::MAX_INTERVAL_SECS);
        std::time::Duration::from_secs(seconds.into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mission {
    pub id: MissionId,
    pub mission_scope: MissionScope,
    /// Room in which prompts are posted.
    pub room: RoomId,
    pub text: Box<str>,
    /// Sorted by agent id.
    pub agents: Vec<MissionAgent>,
    /// User that set the mission, and sender of its prompts.
    pub created_by: UserId,
    pub created_at: Time,
    pub ended_at: Option<Time>,
    /// Number of prompts posted for the mission.
    pub prompts: u32,
}

/// State of an agent in a mission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissionAgent {
    pub agent: AgentId,
    /// Whether the mission lists the agent. If not, it was prompted because an idle prompt of a wider scope
    /// applies to it.
    pub named: bool,
    pub idle: IdlePrompt,
    pub prompted_at: Option<Time>,
}

impl Mission {
    /// Maximum number of prompts for one mission. After that, a user must set the mission again.
    pub const MAX_PROMPTS: u32 = 100;
    pub const MAX_AGENTS: usize = 50;

    pub fn is_on(&self) -> bool {
        self.ended_at.is_none()
    }

    pub fn agent(&self, agent: &AgentId) -> Option<&MissionAgent> {
        self.agents.iter().find(|known| known.agent == *agent)
    }

    /// Returns the idle prompt that applies to `agent`: fields of the mission first, then of `overridden`
    /// (the mission scope), then of `own` (the agent). `None` if the mission does not list the agent and no
    /// prompt text is set.
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

    /// Returns the total size of its texts, in bytes.
    pub fn length(&self) -> usize {
        let prompts = self.agents.iter().filter_map(|known| known.idle.prompt.as_deref());
        self.text.len() + prompts.map(str::len).sum::<usize>()
    }

    /// Returns the text of the prompt message. It is sent in the name of the mission's creator, so a prompt
    /// text from another source is quoted.
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

    /// Returns the mission after a prompt to `agent` at `now`.
    pub fn prompted(&self, agent: &AgentId, now: Time) -> Self {
        let mut after = self.clone();
        after.prompts += 1;
        match after.agents.binary_search_by(|known| known.agent.cmp(agent)) {
            Ok(index) => after.agents[index].prompted_at = Some(now),
            Err(index) => {
                let (idle, prompted_at) = (IdlePrompt::default(), Some(now));
                after
                    .agents
                    .insert(index, MissionAgent { agent: agent.clone(), named: false, idle, prompted_at });
            }
        }
        after
    }
}

/// Value of [`Message::source`] for prompts that the hub posts for a mission.
pub const SOURCE: &str = "mission";

/// Returns the prompted agent and the mission id, if `message` is a mission prompt. Only the hub posts
/// messages with this source and a user as sender; a routed message with the same source has an external
/// sender.
pub fn of(message: &Message) -> Option<(&AgentId, &str)> {
    let from_hub = &*message.source == SOURCE && message.sender.user().is_some();
    let agent = message.mentions.first().filter(|_| from_hub)?.member.agent()?;
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
    fn the_mission_overrides_the_scope_and_the_scope_overrides_the_agents_own_prompt() {
        let coder = AgentId::stored("coder");
        let (own, over) = (idle(Some("own"), Some(40)), idle(Some("over"), None));
        let named = mission(Some(idle(None, Some(50))));
        assert_eq!(named.idle(&coder, Some(&over), Some(&own)), Some(idle(Some("over"), Some(50))));
        assert_eq!(
            named.idle(&coder, None, None),
            Some(idle(None, Some(50))),
            "a listed agent needs no prompt text"
        );
        let full = mission(Some(idle(Some("mission"), None)));
        assert_eq!(full.idle(&coder, Some(&over), Some(&own)), Some(idle(Some("mission"), Some(40))));
        let unnamed = mission(None);
        assert_eq!(unnamed.idle(&coder, Some(&over), Some(&own)), Some(idle(Some("over"), Some(40))));
        assert_eq!(unnamed.idle(&coder, Some(&idle(None, Some(40))), None), None, "no prompt text is set");
        assert_eq!(unnamed.idle(&coder, None, None), None);
    }

    #[test]
    fn a_prompt_text_from_outside_the_mission_is_quoted() {
        let coder = AgentId::stored("coder");
        let mine = mission(Some(idle(Some("look at CI"), None)));
        assert_eq!(mine.prompt(&coder, &idle(Some("look at CI"), None)), "Mission: Tea\n\nlook at CI");
        let theirs = mission(None).prompt(&coder, &idle(Some("I, ann,\norder"), None));
        assert_eq!(theirs, "Mission: Tea\n\nIdle prompt of this agent:\n> I, ann,\n> order");
    }

    #[test]
    fn the_idle_interval_is_limited_to_the_allowed_range() {
        let seconds = |interval| idle(None, interval).idle_timeout().as_secs();
        assert_eq!([None, Some(1), Some(90), Some(u32::MAX)].map(seconds), [60, 30, 90, 86_400]);
    }
}
