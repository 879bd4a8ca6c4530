//! Kind `acp`: any program that speaks the Agent Client Protocol over its standard input and output.
//!
//! One process serves all rooms of an agent, with a session for each. It is started for the first turn, and again for
//! the next one after it died. We offer it no files and no terminal: it has its own, and asks before it uses them.

mod connection;
mod preset;
mod session;
mod translate;

pub use preset::{PRESETS, Preset};

use super::prompt::prompt_text;
use super::{AgentConfig, SlashCommand};
use crate::finding::{Finding, Health};
use crate::process::Program;
use crate::run::{RunInput, RunIo, RunResult};
use agent_client_protocol::ErrorCode;
use agent_client_protocol::v1::schema::{CloseSessionRequest, NewSessionRequest, SessionId};
use connection::{Connection, told};
use parking_lot::Mutex;
use parlor_model::{Activity, RoomId, RunEvent};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct Acp {
    program: Program,
    /// What people are told it is.
    name: Box<str>,
    /// Held while it is started: who comes second uses what the first one started.
    current: tokio::sync::Mutex<Option<Arc<Connection>>>,
    rooms: Mutex<HashMap<RoomId, SessionId>>,
    commands: Mutex<Vec<SlashCommand>>,
}

impl Acp {
    pub fn new(agent_config: &AgentConfig) -> Result<Self, Box<str>> {
        agent_config.reject_unknown_keys(&[])?;
        let program = match agent_config.kind().1 {
            None if agent_config.command.is_empty() => {
                return Err("an acp agent needs the program to run".into());
            }
            None => Program::default(),
            Some(_) if !agent_config.command.is_empty() => {
                return Err(format!(
                    "{} brings its own program; for another one, say acp",
                    agent_config.kind
                )
                .into());
            }
            Some(name) => preset::preset(name).ok_or_else(|| {
                let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                format!("acp:{name} is not known here: {}", known.join(", "))
            })?,
        };
        let program = agent_config.program(program);
        Ok(Self {
            name: preset::name_of(&program).into(),
            program,
            current: tokio::sync::Mutex::default(),
            rooms: Mutex::default(),
            commands: Mutex::default(),
        })
    }

    pub async fn execute(&self, turn: &RunInput, stage: &RunIo) -> RunResult {
        let connection = tokio::select! {
            biased;
            () = stage.stopped() => return RunResult::Stopped,
            connection = self.connection(Some(stage)) => connection,
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(why) => return RunResult::Failed(why),
        };
        let session = tokio::select! {
            biased;
            () = stage.stopped() => return RunResult::Stopped,
            session = self.session(&connection, turn, stage) => session,
        };
        let ending = match session {
            Ok(session) => {
                self.rooms.lock().insert(turn.request.room.clone(), session.clone());
                let words = prompt_text(turn, &connection.commands());
                session::play(&connection, &session, &self.name, words, stage).await
            }
            Err(ending) => ending,
        };
        *self.commands.lock() = connection.commands();
        ending
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The session of that room is over.
    pub fn forget(&self, room: &RoomId) {
        let session = self.rooms.lock().remove(room);
        if let (Some(session), Ok(current)) = (session, self.current.try_lock())
            && let Some(connection) = &*current
        {
            connection.forget(&session);
        }
    }

    /// What it understands after a slash, as far as it has said so.
    pub fn commands(&self) -> Vec<SlashCommand> {
        self.commands.lock().clone()
    }

    /// What `doctor` says of it. Starts it, and opens a session: nothing less tells whether it is signed in.
    pub async fn examine(&self) -> Vec<Finding> {
        let failure = |what: String, fix: String| {
            vec![Finding { state: Health::Failure, what: what.into(), fix: Some(fix.into()) }]
        };
        let folder = self.directory();
        if !folder.is_dir() {
            let folder = folder.display();
            return failure(format!("Its directory {folder} is missing."), format!("mkdir -p {folder}"));
        }
        if let Err(error) = self.program.found() {
            return failure(format!("{error}."), preset::how_to_install(&self.program));
        }
        let connection = match self.connection(None).await {
            Ok(connection) => connection,
            Err(why) => return failure(why.into(), preset::how_to_update(&self.program)),
        };
        let version = connection.info.as_ref().map(|info| format!(" {}", info.version)).unwrap_or_default();
        match connection.request(NewSessionRequest::new(folder)).await {
            Ok(opened) => {
                if connection.abilities.session_capabilities.close.is_some() {
                    let _ = connection.request(CloseSessionRequest::new(opened.session_id)).await;
                }
                let what = format!("{}{version} answers and is ready.", self.name);
                vec![Finding { state: Health::Ok, what: what.into(), fix: None }]
            }
            Err(error) if error.code == ErrorCode::AUTH_REQUIRED => failure(
                format!("{}{version} is not signed in.", self.name),
                preset::how_to_sign_in(&self.program),
            ),
            Err(error) => failure(
                format!("{}{version} opens no session: {}.", self.name, told(&error)),
                preset::how_to_update(&self.program),
            ),
        }
    }

    /// The one that runs, or a new one.
    async fn connection(&self, stage: Option<&RunIo>) -> Result<Arc<Connection>, Box<str>> {
        let mut current = self.current.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.has_ended()) {
            return Ok(connection.clone());
        }
        if let Some(stage) = stage {
            let detail = Some(format!("Starting {}", self.name).into());
            let _ = stage
                .tell(RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None })
                .await;
        }
        let connection = Arc::new(Connection::open(&self.program, &self.name).await?);
        *current = Some(connection.clone());
        Ok(connection)
    }

    /// The session of this room: the one that is open, the one of an earlier process, or a new one.
    async fn session(
        &self,
        connection: &Connection,
        turn: &RunInput,
        stage: &RunIo,
    ) -> Result<SessionId, RunResult> {
        if let Some(earlier) = turn.session.as_deref().map(SessionId::new)
            && (connection.knows(&earlier)
                || session::resume_session(connection, &earlier, &self.directory()).await)
        {
            return Ok(earlier);
        }
        let opened = match connection.request(NewSessionRequest::new(self.directory())).await {
            Ok(opened) => opened.session_id,
            Err(error) => return Err(session::failure(connection, &self.name, &error).await),
        };
        connection.has_session(&opened, Some(0));
        match stage.remember(&*opened.0).await {
            Ok(()) => Ok(opened),
            Err(_) => Err(RunResult::Stopped),
        }
    }

    /// The protocol wants it absolute.
    fn directory(&self) -> PathBuf {
        let directory = self.program.directory.as_deref().unwrap_or(Path::new("."));
        std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
    }
}

impl fmt::Debug for Acp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acp").field("program", &self.program.program).finish_non_exhaustive()
    }
}
