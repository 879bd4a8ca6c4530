//! Answers of a Parlor gateway to requests of users. The hub relays them to the user with another `type`; other
//! gateways may send other fields.

use serde::Serialize;
use serde_json::Value;
#[cfg(test)]
use ts_rs::TS;

#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum AnswerFrame<'a> {
    #[serde(rename = "gateway:agent_command_result")]
    AgentCommandResult {
        agent_id: &'a str,
        room_id: &'a str,
        command: &'a str,
        success: bool,
        message: &'a str,
    },
    #[serde(rename = "gateway:agent_info")]
    AgentInfo {
        agent_id: &'a str,
        #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
        slash_commands: Value,
        mcp_servers: [&'a str; 0],
        permission_level: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        room_id: Option<&'a str>,
    },
    #[serde(rename = "gateway:workspace_response")]
    WorkspaceResponse {
        agent_id: &'a str,
        request_id: &'a str,
        #[cfg_attr(test, ts(as = "crate::typescript::Unknown"))]
        response: Value,
    },
    #[serde(rename = "gateway:rewind_result")]
    RewindResult { agent_id: &'a str, room_id: &'a str, success: bool },
    #[serde(rename = "gateway:spawn_result")]
    SpawnResult {
        request_id: &'a str,
        success: bool,
        /// The created agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_id: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
    #[serde(rename = "gateway:credential_list")]
    CredentialList {
        credentials: [&'a str; 0],
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
    },
    #[serde(rename = "gateway:credential_result")]
    CredentialResult(Unsupported<'a>),
    #[serde(rename = "gateway:oauth_url")]
    OauthUrl(Unsupported<'a>),
    #[serde(rename = "gateway:oauth_result")]
    OauthResult(Unsupported<'a>),
}

/// Answer to a request that the gateway does not support.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Unsupported<'a> {
    pub success: bool,
    pub error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
}
