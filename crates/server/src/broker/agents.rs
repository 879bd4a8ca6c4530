//! Agents with the state of their folders and sessions.

use super::sessions;
use crate::connection::peer::Peer;
use parlor_model::query::{FoundAgent, GetAgent, ListAgents, MayFollowSessions};
use parlor_model::{AgentId, Refusal, Run, RunState};
use parlor_wire::broker::codes;
use parlor_wire::broker::egress::{self, AgentFolder, AgentState, BrokerAnswer, tools};
use parlor_wire::broker::frames::RequestType;
use serde_json::value::RawValue;

pub(super) async fn list(peer: &Peer, query: ListAgents) -> Result<Vec<AgentState>, Refusal> {
    let agents = peer.read(query).await?;
    let user = peer.signed_in()?.session.user().clone();
    let own = agents.iter().filter(|agent| agent.owner == user).map(|agent| agent.id.clone()).collect();
    let mut folders = folders(peer, own).await.into_iter();
    // A key without the scope for agents may list the agents, but not their sessions.
    let runs = match sessions::active(peer, None).await {
        Err(Refusal::Forbidden) => Vec::new(),
        runs => runs?,
    };
    let states = agents.into_iter().map(|agent| {
        let is_own = agent.owner == user;
        let folder = is_own.then(|| folders.next()).flatten().unwrap_or_default();
        let running = runs.iter().filter(|run| run.agent == agent.id && run.state == RunState::Running);
        let mut active: Vec<_> = running.filter_map(Run::session).cloned().collect();
        active.sort();
        active.dedup();
        AgentState { agent, folder, active }
    });
    Ok(states.collect())
}

pub(super) async fn get(peer: &Peer, query: GetAgent) -> Result<BrokerAnswer, Refusal> {
    let id = query.id.clone();
    let found = peer.read(query).await?;
    let folder = match &found {
        FoundAgent::Own { .. } => folders(peer, vec![id]).await.pop().unwrap_or_default(),
        FoundAgent::OfAnother(_) => AgentFolder::default(),
    };
    Ok(BrokerAnswer::Agent { found, folder })
}

/// Reads the folders of agents again.
pub(super) async fn rebuild(peer: &Peer, kind: RequestType, req_id: Option<&RawValue>) -> String {
    let permitted = match peer.signed_in() {
        Ok(identity) => peer.app.hub.may(&identity.session.caller(), MayFollowSessions).await,
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = permitted {
        return egress::error(kind, req_id, &codes::sentence(&refusal, None));
    }
    let folders = peer.app.config.folders.clone();
    // A failure is a panic of the folders component, which it logs itself.
    let _ = tokio::task::spawn_blocking(move || folders.rescan()).await;
    tools::rebuilt(req_id)
}

/// Folders of the caller's own agents, in this order.
async fn folders(peer: &Peer, agents: Vec<AgentId>) -> Vec<AgentFolder> {
    let folders = peer.app.config.folders.clone();
    let read = move || {
        let folders = agents.iter().map(|agent| match folders.folder(agent) {
            None => AgentFolder::default(),
            Some(info) => AgentFolder {
                path: Some(info.path),
                has_claude_md: info.has_claude_md,
                is_missing: info.is_missing,
            },
        });
        folders.collect()
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}
