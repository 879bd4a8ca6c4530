//! Answers requests of users to agents and gateways that are not runs: slash commands, agent information,
//! workspace, rewind, remote creation of agents, credentials.

use super::store::new_id;
use super::workspace::WorkspaceRequest;
use super::{AgentSpec, Gateway, HostedRun, register, slash_commands, workspace};
use crate::kinds::AgentConfig;
use parlor_model::{AgentId, RoomId, RunContext};
use parlor_wire::agentim::gateway::frames::AnswerFrame;
use parlor_wire::agentim::gateway::frames::answers::Unsupported;
use parlor_wire::agentim::gateway::host::ingress::{Instruction, RelayKind};
use parlor_wire::frames::encode;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tokio::task::JoinError;

const NO_CREDENTIALS: &str =
    "This gateway does not store credentials. Sign in to the agent's program on its machine.";

/// Maximum number of concurrent workspace requests.
const MAX_CONCURRENT_WORKSPACE_REQUESTS: usize = 4;

/// The answer to a workspace request.
pub(super) struct WorkspaceAnswer {
    /// Number of the connection that sent the request. Later connections do not wait for the answer.
    connection: u64,
    frame: String,
}

impl Gateway {
    pub(super) fn answer(&mut self, instruction: Instruction) {
        let answer = match instruction {
            Instruction::Command { agent, room, command, .. } => self.command(&agent, &room, &command),
            Instruction::DescribeAgent { agent, room } => self.describe(&agent, room.as_ref()),
            Instruction::ShowWorkspace { agent, request, wanted, .. } => {
                let Some(hosted) = self.agents.get(&agent) else { return };
                let directory = hosted.agent_config.directory.clone();
                let answer = move |response| {
                    let (agent_id, request_id) = (agent.as_str(), &*request);
                    encode(&AnswerFrame::WorkspaceResponse { agent_id, request_id, response })
                };
                let refused = match (directory, WorkspaceRequest::parse(&wanted.0)) {
                    (None, _) => "This agent has no working directory.",
                    (_, None) => "This kind of request is not supported.",
                    _ if self.workspace_tasks.len() >= MAX_CONCURRENT_WORKSPACE_REQUESTS => {
                        "Too many workspace requests at once. Try again."
                    }
                    (Some(directory), Some(wanted)) => return self.read_workspace(directory, wanted, answer),
                };
                answer(workspace::error(refused))
            }
            Instruction::Rewind { agent, room, .. } => {
                self.reset_session(&agent, &room);
                let (agent_id, room_id) = (agent.as_str(), room.as_str());
                encode(&AnswerFrame::RewindResult { agent_id, room_id, success: true })
            }
            Instruction::Spawn { request, kind, name, working_directory } => {
                let spawned = self.spawn(&kind, &name, working_directory.as_deref());
                encode(&AnswerFrame::SpawnResult {
                    request_id: &request,
                    success: spawned.is_ok(),
                    agent_id: spawned.as_ref().ok().map(AgentId::as_str),
                    error: spawned.as_ref().err().map(|reason| &**reason),
                })
            }
            Instruction::Relay { kind, request, .. } => {
                let request_id = request.as_deref();
                let unsupported = Unsupported { success: false, error: NO_CREDENTIALS, request_id };
                encode(&match kind {
                    RelayKind::ListCredentials => AnswerFrame::CredentialList { credentials: [], request_id },
                    RelayKind::AddCredential | RelayKind::ManageCredential => {
                        AnswerFrame::CredentialResult(unsupported)
                    }
                    RelayKind::StartOauth => AnswerFrame::OauthUrl(unsupported),
                    RelayKind::CompleteOauth => AnswerFrame::OauthResult(unsupported),
                })
            }
            _ => return,
        };
        self.queue_frame(answer);
    }

    /// Starts a task that answers a workspace request on this connection.
    fn read_workspace(
        &mut self,
        directory: PathBuf,
        wanted: WorkspaceRequest,
        answer: impl FnOnce(Value) -> String + Send + 'static,
    ) {
        let connection = self.connections;
        let answer = move |response| WorkspaceAnswer { connection, frame: answer(response) };
        match wanted {
            WorkspaceRequest::Status => {
                self.workspace_tasks.spawn(async move { answer(workspace::status(&directory).await) })
            }
            WorkspaceRequest::Read(read) => {
                self.workspace_tasks.spawn_blocking(move || answer(read.answer(&directory)))
            }
        };
    }

    /// Sends the answer to a workspace request, unless its connection has ended.
    pub(super) fn workspace_answered(&mut self, answer: Result<WorkspaceAnswer, JoinError>) {
        match answer {
            Ok(answer) if answer.connection == self.connections => self.queue_frame(answer.frame),
            Ok(_) => {}
            Err(error) if error.is_cancelled() => {}
            Err(error) => tracing::error!(%error, "a workspace request panicked"),
        }
    }

    fn command(&mut self, agent: &AgentId, room: &RoomId, command: &str) -> String {
        let (success, message) = match command.trim_start_matches('/') {
            "clear" => {
                self.reset_session(agent, room);
                (true, "Started a new conversation.".to_owned())
            }
            "stop" => {
                let context = RunContext::Room(room.clone());
                let matches = |run: &&HostedRun| run.agent == *agent && run.context == context;
                for hosted_run in self.runs.values().filter(matches) {
                    if let Some(handle) = &hosted_run.handle {
                        handle.stop();
                    }
                }
                (true, "Stopped.".into())
            }
            other => (false, self.command_hint(agent, other)),
        };
        let (agent_id, room_id, message) = (agent.as_str(), room.as_str(), &*message);
        encode(&AnswerFrame::AgentCommandResult { agent_id, room_id, command, success, message })
    }

    /// The answer to a command that the gateway does not execute itself. The agent program's own commands
    /// produce a reply, so users send them as a message that starts a run.
    fn command_hint(&self, agent: &AgentId, command: &str) -> String {
        match self.agents.get(agent) {
            Some(hosted) if hosted.commands.iter().any(|own| &*own.name == command) => {
                format!("Write @{} /{command} in the room.", hosted.name)
            }
            _ => "This agent supports the commands clear and stop.".into(),
        }
    }

    /// Discards the session of the agent in that room, so that the next run starts a new one.
    fn reset_session(&mut self, agent: &AgentId, room: &RoomId) {
        let context = RunContext::Room(room.clone());
        if let Some(hosted) = self.agents.get(agent) {
            hosted.kind.forget(&context);
        }
        if let Err(error) = self.data.put_session(agent, &context, None) {
            tracing::warn!(%error, "cannot delete the session of an agent from disk");
        }
    }

    fn describe(&self, agent: &AgentId, room: Option<&RoomId>) -> String {
        let hosted = self.agents.get(agent);
        let model = hosted.and_then(|hosted| hosted.agent_config.extra.get("model"));
        encode(&AnswerFrame::AgentInfo {
            agent_id: agent.as_str(),
            slash_commands: slash_commands(hosted.map_or(&[], |hosted| &hosted.commands)),
            mcp_servers: [],
            permission_level: "interactive",
            model: model.and_then(Value::as_str),
            room_id: room.map(RoomId::as_str),
        })
    }

    fn spawn(&mut self, kind: &str, name: &str, directory: Option<&str>) -> Result<AgentId, Box<str>> {
        let kind = kind_of(kind);
        if !self.spawning.kinds.iter().any(|allowed| allowed == kind) {
            return Err(format!(
                "This gateway does not allow agents of the kind {kind} to be created remotely."
            )
            .into());
        }
        let folder = directory.map(Path::new);
        if let Some(folder) = folder.filter(|folder| !folder.is_absolute() || !folder.is_dir()) {
            return Err(format!("There is no folder {} on this machine.", folder.display()).into());
        }
        if self.agents.values().any(|hosted| &*hosted.name == name) {
            return Err(format!("This gateway already has an agent named {name}.").into());
        }
        let agent_config =
            AgentConfig { kind: kind.into(), directory: folder.map(Into::into), ..AgentConfig::default() };
        let spec = AgentSpec { id: AgentId::stored(new_id()), name: name.into(), agent_config };
        let id = spec.id.clone();
        self.add(spec.clone())?;
        if let Err(error) = self.data.put_spawned(&spec) {
            if let Some(hosted) = self.agents.remove(&id) {
                self.close(hosted);
            }
            return Err(format!("The agent cannot be saved: {error}.").into());
        }
        if let Some(hosted) = self.agents.get(&id) {
            let frame = register(&id, hosted);
            self.queue_frame(frame);
        }
        Ok(id)
    }
}

/// Maps the agent kinds of AgentIM clients to kinds of this crate; other names stay as they are.
fn kind_of(name: &str) -> &str {
    match name {
        "claude-code" => "claude",
        "codex" => "acp:codex",
        "gemini" => "acp:gemini",
        "opencode" => "acp:opencode",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::SpawnPolicy;
    use crate::gateway::store::GatewayStore;
    use std::sync::Arc;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn an_answer_is_sent_only_on_the_connection_that_requested_it() {
        let directory = tempfile::tempdir().unwrap();
        let data = Arc::new(GatewayStore::open(directory.path()).unwrap());
        let mut gateway = Gateway::new(data, SpawnPolicy::default(), mpsc::channel(1).0).unwrap();
        let root = directory.path().to_owned();
        for (reconnected, expected) in [(true, None), (false, Some("answered"))] {
            gateway.begin_connection();
            let wanted = WorkspaceRequest::parse(r#"{"kind":"tree"}"#).unwrap();
            gateway.read_workspace(root.clone(), wanted, |_| "answered".into());
            if reconnected {
                gateway.begin_connection();
            }
            let answer = gateway.workspace_tasks.join_next().await.unwrap();
            gateway.workspace_answered(answer);
            assert_eq!(gateway.frames.pop_front().as_deref(), expected);
        }
    }
}
