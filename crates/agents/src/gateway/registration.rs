//! Agents as their hub is told of them.

use super::HostedAgent;
use super::reply::head;
use crate::kinds::SlashCommand;
use parlor_model::AgentId;
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::ingress::{AgentForm, GatewayMessage};
use serde_json::json;

/// Of what an agent understands after a slash, so much is told.
const MOST_COMMANDS: usize = 100;
const LONGEST_COMMAND: usize = 64;
const LONGEST_DESCRIPTION: usize = 200;

/// What every agent here understands after a slash, and what this one does.
pub fn slash_commands(own: &[SlashCommand]) -> serde_json::Value {
    let ours = [
        ("clear", "Begin a new conversation in this room"),
        ("stop", "End what the agent is doing in this room"),
    ];
    let is_word = |name: &str| {
        let short = (1..=LONGEST_COMMAND).contains(&name.len());
        short && !name.contains(|c: char| c.is_control() || c.is_whitespace())
    };
    let is_new = |name: &str| ours.iter().all(|(known, _)| *known != name);
    let further = own.iter().filter(|command| is_word(&command.name) && is_new(&command.name));
    let further = further.map(|command| (&*command.name, &*command.description)).take(MOST_COMMANDS);
    ours.into_iter()
        .chain(further)
        .map(|(name, description)| match description {
            "" => json!({ "name": name }),
            text => json!({ "name": name, "description": head(text, LONGEST_DESCRIPTION) }),
        })
        .collect()
}

/// `inject`: it takes what is said to it while it is at work.
fn abilities(hosted: &HostedAgent) -> Vec<Box<str>> {
    let inject = hosted.kind.accepts_injection().then_some("inject");
    ["rewind"].into_iter().chain(inject).map(Into::into).collect()
}

pub fn register(id: &AgentId, hosted: &HostedAgent) -> String {
    let directory = hosted.agent_config.directory.as_deref().map(|path| path.to_string_lossy());
    let commands = slash_commands(&hosted.commands);
    egress::write(&GatewayMessage::Register(AgentForm {
        id: id.clone(),
        name: hosted.name.clone(),
        kind: hosted.agent_config.kind.as_str().into(),
        working_directory: directory.map(|path| path.into()),
        capabilities: abilities(hosted),
        model: hosted.agent_config.extra.get("model").and_then(|model| model.as_str()).map(Into::into),
        slash_commands: Some(parlor_model::Payload(commands.to_string().into())),
        mcp_servers: None,
    }))
}
