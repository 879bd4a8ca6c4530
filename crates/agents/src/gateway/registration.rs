//! The registration frame of an agent: name, kind, capabilities and slash commands.

use super::HostedAgent;
use super::reply::head;
use crate::kinds::SlashCommand;
use parlor_model::AgentId;
use parlor_wire::agentim::gateway::host::egress;
use parlor_wire::agentim::gateway::ingress::{AgentForm, GatewayMessage};
use serde_json::json;

/// Maximum number of an agent's own slash commands in the registration.
const MAX_COMMANDS: usize = 100;
/// Maximum bytes of the name of a slash command; longer ones are left out.
const MAX_COMMAND_BYTES: usize = 64;
/// Maximum bytes of the description of a slash command; the rest is cut off.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// Slash commands that every hosted agent has, followed by the agent's own.
pub fn slash_commands(own: &[SlashCommand]) -> serde_json::Value {
    let common = [
        ("clear", "Start a new conversation in this room"),
        ("stop", "Stop what the agent is doing in this room"),
    ];
    let is_valid = |name: &str| {
        let short = (1..=MAX_COMMAND_BYTES).contains(&name.len());
        short && !name.contains(|c: char| c.is_control() || c.is_whitespace())
    };
    let is_new = |name: &str| common.iter().all(|(existing, _)| *existing != name);
    let own = own.iter().filter(|command| is_valid(&command.name) && is_new(&command.name));
    let own = own.map(|command| (&*command.name, &*command.description)).take(MAX_COMMANDS);
    common
        .into_iter()
        .chain(own)
        .map(|(name, description)| match description {
            "" => json!({ "name": name }),
            text => json!({ "name": name, "description": head(text, MAX_DESCRIPTION_BYTES) }),
        })
        .collect()
}

/// Capabilities of the agent. `inject` means that messages can be injected into an active run.
fn capabilities(hosted: &HostedAgent) -> Vec<Box<str>> {
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
        capabilities: capabilities(hosted),
        model: hosted.agent_config.extra.get("model").and_then(|model| model.as_str()).map(Into::into),
        slash_commands: Some(parlor_model::Payload(commands.to_string().into())),
        mcp_servers: None,
    }))
}
