//! REST bodies for missions and idle prompts. Times are in seconds since 1970.

use parlor_model::{AgentId, IdlePrompt, Mission, MissionScope, Time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Idle prompt of an agent in a mission.
#[derive(Serialize, ToSchema)]
pub struct IdleAgent {
    pub id: String,
    /// Prompt text in addition to the text of the mission.
    #[schema(required)]
    pub idle_prompt: Option<String>,
    /// Idle time before each prompt, in seconds: 30 to 86400.
    #[schema(required)]
    pub idle_interval_secs: Option<u32>,
}

/// `POST /api/mission`
#[derive(Deserialize, ToSchema)]
pub struct NewMission {
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    #[schema(nullable = false)]
    pub project_root: Option<String>,
    pub text: String,
    /// Agents to prompt while they are idle, at most 50. Other agents are prompted only if a prompt text is set
    /// for them: by an override for the room or project root, or in their own idle prompt.
    #[schema(nullable = false)]
    pub agents: Option<Vec<NewIdleAgent>>,
}

#[derive(Deserialize, ToSchema)]
pub struct NewIdleAgent {
    pub id: String,
    pub idle_prompt: Option<String>,
    pub idle_interval_secs: Option<u32>,
}

/// Scope for `DELETE /api/mission` and `DELETE /api/agent-override`, in the body or in the query string.
#[derive(Deserialize, ToSchema)]
pub struct ScopeParams {
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    #[schema(nullable = false)]
    pub project_root: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct MissionBody {
    pub id: String,
    pub active: bool,
    pub text: String,
    #[schema(required)]
    pub project_root: Option<String>,
    /// Room in which prompts are posted.
    pub session_id: String,
    /// User that set the mission, and sender of its prompts.
    pub created_by: String,
    pub created_at: i64,
    #[schema(required)]
    pub ended_at: Option<i64>,
    /// Number of prompts posted so far.
    pub prompts: u32,
    /// Maximum number of prompts for the mission.
    pub max_prompts: u32,
    /// Agents that the mission lists.
    pub agents: Vec<IdleAgent>,
}

fn seconds(time: Time) -> i64 {
    time.0.div_euclid(1_000_000)
}

impl From<&Mission> for MissionBody {
    fn from(mission: &Mission) -> Self {
        let named = mission.agents.iter().filter(|known| known.named).map(|known| IdleAgent {
            id: known.agent.as_str().into(),
            idle_prompt: known.idle.prompt.as_deref().map(Into::into),
            idle_interval_secs: known.idle.interval,
        });
        Self {
            id: mission.id.as_str().into(),
            active: mission.is_on(),
            text: mission.text.as_ref().into(),
            project_root: match &mission.mission_scope {
                MissionScope::Root(root) => Some(root.as_ref().into()),
                MissionScope::Room(_) | MissionScope::Global => None,
            },
            session_id: mission.room.as_str().into(),
            created_by: mission.created_by.as_str().into(),
            created_at: seconds(mission.created_at),
            ended_at: mission.ended_at.map(seconds),
            prompts: mission.prompts,
            max_prompts: Mission::MAX_PROMPTS,
            agents: named.collect(),
        }
    }
}

/// `GET /api/mission`: the active mission, or `{"active": false}`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum ActiveMission {
    On(Box<MissionBody>),
    Off(NoMission),
}

#[derive(Serialize, ToSchema)]
pub struct NoMission {
    pub active: bool,
}

impl ActiveMission {
    pub fn new(mission: Option<&Mission>) -> Self {
        match mission {
            Some(mission) => Self::On(Box::new(mission.into())),
            None => Self::Off(NoMission { active: false }),
        }
    }
}

/// `GET /api/missions`
#[derive(Serialize, ToSchema)]
pub struct Missions {
    /// Missions, newest first.
    pub missions: Vec<MissionBody>,
}

impl Missions {
    pub fn new(missions: &[Mission]) -> Self {
        Self { missions: missions.iter().map(MissionBody::from).collect() }
    }
}

/// `POST /api/agent-override`
#[derive(Deserialize, ToSchema)]
pub struct NewOverride {
    pub agent_id: String,
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    #[schema(nullable = false)]
    pub project_root: Option<String>,
    pub idle_prompt: Option<String>,
    pub idle_interval_secs: Option<u32>,
}

/// `GET /api/agent-override`
#[derive(Serialize, ToSchema)]
pub struct AgentOverride {
    pub agent_id: String,
    #[schema(required)]
    pub idle_prompt: Option<String>,
    #[schema(required)]
    pub idle_interval_secs: Option<u32>,
}

impl AgentOverride {
    pub fn new(agent: &AgentId, idle: &IdlePrompt) -> Self {
        Self {
            agent_id: agent.as_str().into(),
            idle_prompt: idle.prompt.as_deref().map(Into::into),
            idle_interval_secs: idle.interval,
        }
    }
}
