//! Missions, and how idle agents are prompted: the bodies of these calls. Times are in seconds.

use parlor_model::{AgentId, IdlePrompt, Mission, MissionScope, Time};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How an agent is prompted for a mission.
#[derive(Serialize, ToSchema)]
pub struct IdleAgent {
    pub id: String,
    /// What else it is told besides the mission.
    #[schema(required)]
    pub idle_prompt: Option<String>,
    /// After so many seconds without anything to do: 30 to 86400.
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
    /// At most 50; those that are not named are prompted where an override or their own says how.
    #[schema(nullable = false)]
    pub agents: Option<Vec<NewIdleAgent>>,
}

#[derive(Deserialize, ToSchema)]
pub struct NewIdleAgent {
    pub id: String,
    pub idle_prompt: Option<String>,
    pub idle_interval_secs: Option<u32>,
}

/// `DELETE /api/mission`, `DELETE /api/agent-override`: in the body, or in the query.
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
    /// Where agents are prompted.
    pub session_id: String,
    /// In whose name.
    pub created_by: String,
    pub created_at: i64,
    #[schema(required)]
    pub ended_at: Option<i64>,
    /// How often agents were prompted for it, and how often they are at most.
    pub prompts: u32,
    pub max_prompts: u32,
    /// Those that it names.
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
            max_prompts: Mission::MOST_PROMPTS,
            agents: named.collect(),
        }
    }
}

/// `GET /api/mission`: the one that is on, or `{"active": false}`.
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
    /// The newest first.
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
