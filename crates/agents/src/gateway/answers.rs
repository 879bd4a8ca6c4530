//! What people ask of agents and gateways besides turns.

use super::store::new_id;
use super::{AgentSpec, Gateway, register, slash_commands, workspace};
use crate::kinds::AgentConfig;
use parlor_model::{AgentId, RoomId};
use parlor_wire::agentim::gateway::host::ingress::{Instruction, RelayKind};
use serde_json::{Value, json};
use std::path::Path;

const NO_CREDENTIALS: &str =
    "This gateway keeps no credentials. Sign in to the agent's program on the machine itself.";

/// Looks into folders at the same time.
const LOOKS: usize = 4;

impl Gateway {
    pub(super) fn answer(&mut self, asked: Instruction) {
        let answer = match asked {
            Instruction::Command { agent, room, command, .. } => self.command(&agent, &room, &command),
            Instruction::DescribeAgent { agent, room } => self.describe(&agent, room.as_ref()),
            Instruction::ShowWorkspace { agent, request, wanted, .. } => {
                let Some(hosted) = self.agents.get(&agent) else { return };
                let answer = move |response| {
                    json!({ "type": "gateway:workspace_response", "agentId": agent.as_str(),
                        "requestId": request, "response": response })
                };
                match hosted.agent_config.directory.clone() {
                    Some(directory) if self.looks.len() < LOOKS => {
                        let look =
                            async move { answer(workspace::show(directory, &wanted.0).await).to_string() };
                        self.looks.spawn(look);
                        return;
                    }
                    Some(_) => answer(workspace::error("Too many look at once. Try again.")),
                    None => answer(workspace::error("This agent has no folder to work in.")),
                }
            }
            Instruction::Rewind { agent, room, .. } => {
                self.begin_anew(&agent, &room);
                json!({ "type": "gateway:rewind_result", "agentId": agent.as_str(),
                    "roomId": room.as_str(), "success": true })
            }
            Instruction::Spawn { request, kind, name, working_directory } => {
                let spawned = self.spawn(&kind, &name, working_directory.as_deref());
                let mut answer = json!({ "type": "gateway:spawn_result", "requestId": request,
                    "success": spawned.is_ok() });
                match spawned {
                    Ok(agent) => answer["agentId"] = agent.as_str().into(),
                    Err(reason) => answer["error"] = (&*reason).into(),
                }
                answer
            }
            Instruction::Relay { kind, request, .. } => {
                let mut answer = match kind {
                    RelayKind::ListCredentials => {
                        json!({ "type": "gateway:credential_list", "credentials": [] })
                    }
                    RelayKind::AddCredential | RelayKind::ManageCredential => json!({
                        "type": "gateway:credential_result", "success": false, "error": NO_CREDENTIALS }),
                    RelayKind::StartOauth => json!({
                        "type": "gateway:oauth_url", "success": false, "error": NO_CREDENTIALS }),
                    RelayKind::CompleteOauth => json!({
                        "type": "gateway:oauth_result", "success": false, "error": NO_CREDENTIALS }),
                };
                if let Some(request) = request {
                    answer["requestId"] = (&*request).into();
                }
                answer
            }
            _ => return,
        };
        self.say(answer.to_string());
    }

    fn command(&mut self, agent: &AgentId, room: &RoomId, command: &str) -> Value {
        let (success, message) = match command.trim_start_matches('/') {
            "clear" => {
                self.begin_anew(agent, room);
                (true, "A new conversation begins.".into())
            }
            "stop" => {
                for playing in self.turns.values().filter(|one| one.agent == *agent && one.room == *room) {
                    if let Some(act) = &playing.act {
                        act.stop();
                    }
                }
                (true, "Stopped.".into())
            }
            other => (false, self.how_to(agent, other)),
        };
        json!({ "type": "gateway:agent_command_result", "agentId": agent.as_str(), "roomId": room.as_str(),
            "command": command, "success": success, "message": message })
    }

    /// What a program understands by itself is an answer of its own, and so a turn.
    fn how_to(&self, agent: &AgentId, command: &str) -> String {
        match self.agents.get(agent) {
            Some(hosted) if hosted.commands.iter().any(|known| &*known.name == command) => {
                format!("Write @{} /{command} in the room.", hosted.name)
            }
            _ => "This agent knows the commands clear and stop.".into(),
        }
    }

    /// The session of the agent in that room is over, and nothing of it comes back.
    fn begin_anew(&mut self, agent: &AgentId, room: &RoomId) {
        if let Some(hosted) = self.agents.get(agent) {
            hosted.kind.forget(room);
        }
        if let Err(error) = self.data.put_session(agent, room, None) {
            tracing::warn!(%error, "the session of an agent cannot be forgotten");
        }
    }

    fn describe(&self, agent: &AgentId, room: Option<&RoomId>) -> Value {
        let hosted = self.agents.get(agent);
        let mut answer = json!({ "type": "gateway:agent_info", "agentId": agent.as_str(),
            "slashCommands": slash_commands(hosted.map_or(&[], |hosted| &hosted.commands)),
            "mcpServers": [], "permissionLevel": "interactive" });
        let model = hosted.and_then(|hosted| hosted.agent_config.extra.get("model"));
        if let Some(model) = model.and_then(Value::as_str) {
            answer["model"] = model.into();
        }
        if let Some(room) = room {
            answer["roomId"] = room.as_str().into();
        }
        answer
    }

    fn spawn(&mut self, kind: &str, name: &str, directory: Option<&str>) -> Result<AgentId, Box<str>> {
        let kind = kind_of(kind);
        if !self.spawning.kinds.iter().any(|allowed| allowed == kind) {
            return Err(
                format!("This gateway does not let agents of the kind {kind} be made from afar.").into()
            );
        }
        let folder = directory.map(Path::new);
        if let Some(folder) = folder.filter(|folder| !folder.is_absolute() || !folder.is_dir()) {
            return Err(format!("There is no folder {} on this machine.", folder.display()).into());
        }
        if self.agents.values().any(|hosted| &*hosted.name == name) {
            return Err(format!("There is an agent of the name {name} here already.").into());
        }
        let agent_config =
            AgentConfig { kind: kind.into(), directory: folder.map(Into::into), ..AgentConfig::default() };
        let plan = AgentSpec { id: AgentId::stored(new_id()), name: name.into(), agent_config };
        let id = plan.id.clone();
        self.add(plan.clone())?;
        if let Err(error) = self.data.put_spawned(&plan) {
            self.agents.remove(&id);
            return Err(format!("It cannot be kept: {error}.").into());
        }
        if let Some(hosted) = self.agents.get(&id) {
            let form = register(&id, hosted);
            self.say(form);
        }
        Ok(id)
    }
}

/// The kind that AgentIM's clients mean by a word of theirs.
fn kind_of(word: &str) -> &str {
    match word {
        "claude-code" => "claude",
        "codex" => "acp:codex",
        "gemini" => "acp:gemini",
        "opencode" => "acp:opencode",
        own => own,
    }
}
