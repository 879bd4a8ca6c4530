//! Registrations of agents: an agent of the caller that is a member of a project.

use parlor_model::{Agent, Payload, RoomId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Names of the settings of an agent that keep the fields of its registration.
const INSTRUCTIONS: &str = "agentInstructions";
const PROVIDER: &str = "agentProvider";
const COMMAND: &str = "customCommand";
const MACHINE: &str = "machineName";

/// Maximum length of the description of an agent.
const MAX_DESCRIPTION_CHARS: usize = 2000;

/// Body of `PUT /api/agent-registrations`, and an entry of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = JaibberAgentRegistration)]
#[serde(rename_all = "camelCase")]
pub struct AgentRegistration {
    pub project_id: Box<str>,
    pub agent_name: Box<str>,
    pub agent_instructions: Option<Box<str>>,
    pub agent_provider: Option<Box<str>>,
    pub custom_command: Option<Box<str>>,
    pub machine_name: Option<Box<str>>,
}

impl AgentRegistration {
    pub fn of(agent: &Agent, room: &RoomId) -> Self {
        let setting = |name: &str| serde_json::from_str(&agent.settings.get(name)?.0).ok();
        Self {
            project_id: room.as_str().into(),
            agent_name: agent.name.clone(),
            agent_instructions: setting(INSTRUCTIONS),
            agent_provider: setting(PROVIDER),
            custom_command: setting(COMMAND),
            machine_name: setting(MACHINE),
        }
    }

    /// The instructions as far as the description of an agent can hold them: the users of a room see them there,
    /// as for an agent that its own connection registers.
    pub fn description(&self) -> Option<Box<str>> {
        let instructions = self.agent_instructions.as_deref()?;
        Some(instructions.chars().take(MAX_DESCRIPTION_CHARS).collect::<String>().into())
    }

    /// The given fields as settings of the agent.
    pub fn settings(&self) -> Vec<(Box<str>, Payload)> {
        let fields = [
            (INSTRUCTIONS, &self.agent_instructions),
            (PROVIDER, &self.agent_provider),
            (COMMAND, &self.custom_command),
            (MACHINE, &self.machine_name),
        ];
        let text = |text: &str| Payload(serde_json::Value::from(text).to_string().into());
        fields.into_iter().filter_map(|(name, value)| Some((name.into(), text(value.as_deref()?)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{AgentHost, AgentId, Time, UserId, Visibility};

    #[test]
    fn an_agent_keeps_the_fields_of_its_registration() {
        let registration = AgentRegistration {
            project_id: "lobby".into(),
            agent_name: "Coder".into(),
            agent_instructions: Some("be \"nice\"".into()),
            agent_provider: Some("claude".into()),
            custom_command: None,
            machine_name: Some("box".into()),
        };
        let agent = Agent {
            id: AgentId::stored("coder"),
            owner: UserId::stored("ann"),
            name: "Coder".into(),
            description: "".into(),
            settings: registration.settings().into_iter().collect(),
            host: AgentHost::default(),
            visibility: Visibility::Private,
            created_at: Time(1),
        };
        assert_eq!(AgentRegistration::of(&agent, &RoomId::stored("lobby")), registration);
    }
}
