//! Bodies for agents and gateways.

use crate::agentim::egress::agents::kind;
use crate::time::iso;
use parlor_model::query::AgentCard;
use parlor_model::{AgentStatus, Payload, UserId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewAgent {
    /// Id under which the gateway will register the agent. Default: a generated id.
    pub id: Option<Box<str>>,
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    #[serde(rename = "type")]
    pub kind: Option<Box<str>>,
    #[schema(value_type = Option<AgentVisibility>)]
    #[cfg_attr(test, ts(as = "Option<AgentVisibility>"))]
    pub visibility: Option<Box<str>>,
    pub visibility_list: Option<Vec<Box<str>>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentChanges {
    pub name: Option<Box<str>>,
    pub description: Option<Box<str>>,
    #[schema(value_type = Option<AgentVisibility>)]
    #[cfg_attr(test, ts(as = "Option<AgentVisibility>"))]
    pub visibility: Option<Box<str>>,
    /// User ids, for the visibility `whitelist`.
    pub visibility_list: Option<Vec<Box<str>>>,
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct NewSpawn {
    pub gateway_id: Box<str>,
    pub agent_type: Box<str>,
    pub name: Box<str>,
    pub working_directory: Option<Box<str>>,
    /// Credential stored by the gateway that the agent uses.
    pub credential_id: Option<Box<str>>,
}

/// The request was sent to the gateway. The result follows in a `server:spawn_result` frame.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Spawning {
    pub request_id: Box<str>,
}

/// Users other than the owner that may see an agent and add it to rooms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum AgentVisibility {
    Private,
    All,
    Whitelist,
}

impl From<&parlor_model::Visibility> for AgentVisibility {
    fn from(visibility: &parlor_model::Visibility) -> Self {
        match visibility {
            parlor_model::Visibility::Private => Self::Private,
            parlor_model::Visibility::All => Self::All,
            parlor_model::Visibility::List(_) => Self::Whitelist,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Agent<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub description: &'a str,
    /// `claude-code`, `codex`, `gemini` or `generic`.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// `online`, `offline`, `busy` or `error`.
    pub status: &'a str,
    pub visibility: AgentVisibility,
    /// Users that the agent is shared with. Filled for the owner only.
    pub visibility_list: Vec<&'a str>,
    pub capabilities: Vec<&'a str>,
    pub connection_type: &'a str,
    #[schema(required)]
    pub gateway_id: Option<&'a str>,
    #[schema(required)]
    pub working_directory: Option<&'a str>,
    #[schema(required)]
    pub model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Vec<serde_json::Value>, required = false)]
    #[cfg_attr(test, ts(type = "unknown[]", optional))]
    pub slash_commands: Option<Vec<&'a RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Vec<serde_json::Value>, required = false)]
    #[cfg_attr(test, ts(type = "unknown[]", optional))]
    pub mcp_servers: Option<Vec<&'a RawValue>>,
    #[schema(required, format = DateTime)]
    pub last_seen_at: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub device_info: Option<DeviceInfo<'a>>,
    pub owner_id: &'a str,
    pub owner_name: &'a str,
    /// `true` if the agent's folder has disappeared from the agents root. Only for the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub missing: Option<bool>,
}

impl<'a> Agent<'a> {
    pub fn new(card: &'a AgentCard, status: AgentStatus, is_missing: bool) -> Self {
        let AgentCard { agent, owner_name, gateway } = card;
        let host = &agent.host;
        let people: &[UserId] = match &agent.visibility {
            parlor_model::Visibility::List(people) => people,
            _ => &[],
        };
        Self {
            id: agent.id.as_str(),
            name: &agent.name,
            description: &agent.description,
            kind: kind(&host.kind),
            status: status.as_str(),
            visibility: (&agent.visibility).into(),
            visibility_list: people.iter().map(UserId::as_str).collect(),
            capabilities: host.capabilities.iter().map(|capability| &**capability).collect(),
            connection_type: "cli",
            gateway_id: host.gateway.as_ref().map(|id| id.as_str()),
            working_directory: host.working_directory.as_deref(),
            model: host.model.as_deref(),
            slash_commands: list(host.slash_commands.as_ref()),
            mcp_servers: list(host.mcp_servers.as_ref()),
            last_seen_at: host.seen_at.map(iso),
            created_at: iso(agent.created_at),
            updated_at: iso(host.seen_at.unwrap_or(agent.created_at)),
            device_info: gateway.as_ref().map(|gateway| (&gateway.device).into()),
            owner_id: agent.owner.as_str(),
            owner_name,
            missing: is_missing.then_some(true),
        }
    }
}

/// Returns the elements of a relayed JSON list; `None` if it is not a list.
fn list(payload: Option<&Payload>) -> Option<Vec<&RawValue>> {
    serde_json::from_str(&payload?.0).ok()
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct DeviceInfo<'a> {
    pub hostname: &'a str,
    pub platform: &'a str,
    pub arch: &'a str,
    pub node_version: &'a str,
}

impl<'a> From<&'a parlor_model::Device> for DeviceInfo<'a> {
    fn from(device: &'a parlor_model::Device) -> Self {
        let parlor_model::Device { hostname, platform, arch, runtime } = device;
        Self { hostname, platform, arch, node_version: runtime }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Gateway<'a> {
    pub id: &'a str,
    pub name: &'a str,
    #[serde(flatten)]
    pub device: DeviceInfo<'a>,
    pub online: bool,
    #[schema(format = DateTime)]
    pub connected_at: String,
    #[schema(required, format = DateTime)]
    pub disconnected_at: Option<String>,
}

impl<'a> From<&'a parlor_model::Gateway> for Gateway<'a> {
    fn from(gateway: &'a parlor_model::Gateway) -> Self {
        Self {
            id: gateway.id.as_str(),
            name: &gateway.device.hostname,
            device: (&gateway.device).into(),
            online: gateway.disconnected_at.is_none(),
            connected_at: iso(gateway.connected_at),
            disconnected_at: gateway.disconnected_at.map(iso),
        }
    }
}
