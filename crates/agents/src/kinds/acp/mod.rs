//! The agent kind `acp`: any program that implements the Agent Client Protocol (ACP) over stdin and stdout.
//!
//! One process serves all contexts of an agent (rooms and Parlor's sessions), with one ACP session each. It is started for the first run,
//! and restarted for the next run after it has died. Parlor does not offer it the optional file and
//! terminal methods of ACP: the agent uses its own, and requests permission first.

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
use connection::{Connection, error_text};
use parking_lot::Mutex;
use parlor_model::{Activity, RunContext, RunEvent};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::task::TaskTracker;

pub struct Acp {
    program: Program,
    /// Name of the program for messages to users.
    name: Box<str>,
    /// The running process. Locked during the start, so that concurrent runs share one process.
    current: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// Tasks of all connections, also of those whose program is still being killed.
    connections: TaskTracker,
    contexts: Mutex<HashMap<RunContext, SessionId>>,
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
                    "{} has its own program; to run another program, use acp",
                    agent_config.kind
                )
                .into());
            }
            Some(name) => preset::preset(name).ok_or_else(|| {
                let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                format!("acp:{name} is not a preset; the presets are {}", names.join(", "))
            })?,
        };
        let program = agent_config.program(program);
        Ok(Self {
            name: preset::name_of(&program).into(),
            program,
            current: tokio::sync::Mutex::default(),
            connections: TaskTracker::new(),
            contexts: Mutex::default(),
            commands: Mutex::default(),
        })
    }

    pub async fn execute(&self, run_input: &RunInput, run_io: &RunIo) -> RunResult {
        let connection = tokio::select! {
            biased;
            () = run_io.stopped() => return RunResult::Stopped,
            connection = self.connection(Some(run_io)) => connection,
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(reason) => return RunResult::Failed(reason),
        };
        let session = tokio::select! {
            biased;
            () = run_io.stopped() => return RunResult::Stopped,
            session = self.session(&connection, run_input, run_io) => session,
        };
        let result = match session {
            Ok(session) => {
                self.contexts.lock().insert(run_input.request.context.clone(), session.clone());
                let prompt = prompt_text(run_input, &connection.commands());
                session::execute_prompt(&connection, &session, &self.name, prompt, run_io).await
            }
            Err(result) => result,
        };
        *self.commands.lock() = connection.commands();
        result
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// Discards the session of that context; the next run there starts a new one.
    pub fn forget(&self, context: &RunContext) {
        let session = self.contexts.lock().remove(context);
        if let (Some(session), Ok(current)) = (session, self.current.try_lock())
            && let Some(connection) = &*current
        {
            connection.forget(&session);
        }
    }

    /// Kills the program, if it runs, and waits until every program that this agent started has ended.
    /// Callers wait for the end of all runs first.
    pub async fn close(&self) {
        if let Some(connection) = self.current.lock().await.take() {
            connection.kill();
        }
        self.connections.close();
        self.connections.wait().await;
    }

    /// Slash commands that the agent has announced so far.
    pub fn commands(&self) -> Vec<SlashCommand> {
        self.commands.lock().clone()
    }

    /// Checks the agent for `parlor gateway doctor`. Starts the program and opens a session, which is the
    /// only way to find out whether it is signed in.
    pub async fn examine(&self) -> Vec<Finding> {
        let failure = |what: String, fix: String| {
            vec![Finding { state: Health::Failure, what: what.into(), fix: Some(fix.into()) }]
        };
        let folder = self.directory();
        if !folder.is_dir() {
            let folder = folder.display();
            return failure(format!("Its directory {folder} is missing."), format!("mkdir -p {folder}"));
        }
        if let Err(error) = self.program.locate() {
            return failure(format!("{error}."), preset::how_to_install(&self.program));
        }
        let connection = match self.connection(None).await {
            Ok(connection) => connection,
            Err(reason) => return failure(reason.into(), preset::how_to_update(&self.program)),
        };
        let version = connection.info.as_ref().map(|info| format!(" {}", info.version)).unwrap_or_default();
        match connection.request(NewSessionRequest::new(folder)).await {
            Ok(opened) => {
                if connection.capabilities.session_capabilities.close.is_some() {
                    let _ = connection.request(CloseSessionRequest::new(opened.session_id)).await;
                }
                let what = format!("{}{version} is ready.", self.name);
                vec![Finding { state: Health::Ok, what: what.into(), fix: None }]
            }
            Err(error) if error.code == ErrorCode::AUTH_REQUIRED => failure(
                format!("{}{version} is not signed in.", self.name),
                preset::how_to_sign_in(&self.program),
            ),
            Err(error) => failure(
                format!("{}{version} cannot open a session: {}.", self.name, error_text(&error)),
                preset::how_to_update(&self.program),
            ),
        }
    }

    /// Returns the connection to the running process, or starts a new process.
    async fn connection(&self, run_io: Option<&RunIo>) -> Result<Arc<Connection>, Box<str>> {
        let mut current = self.current.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| !connection.has_ended()) {
            return Ok(connection.clone());
        }
        if let Some(run_io) = run_io {
            let detail = Some(format!("Starting {}", self.name).into());
            let _ = run_io
                .send_event(RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None })
                .await;
        }
        let connection = Arc::new(Connection::open(&self.program, &self.name, &self.connections).await?);
        *current = Some(connection.clone());
        Ok(connection)
    }

    /// Returns the open session of the context, or resumes the session of an earlier process, or opens a new
    /// one.
    async fn session(
        &self,
        connection: &Connection,
        run_input: &RunInput,
        run_io: &RunIo,
    ) -> Result<SessionId, RunResult> {
        if let Some(earlier) = run_input.session.as_deref().map(SessionId::new)
            && (connection.has_session(&earlier)
                || session::resume_session(connection, &earlier, &self.directory()).await)
        {
            return Ok(earlier);
        }
        let opened = match connection.request(NewSessionRequest::new(self.directory())).await {
            Ok(opened) => opened.session_id,
            Err(error) => return Err(session::failure(connection, &self.name, &error).await),
        };
        connection.add_session(&opened, Some(0));
        match run_io.save_session(&*opened.0).await {
            Ok(()) => Ok(opened),
            Err(_) => Err(RunResult::Stopped),
        }
    }

    /// Working directory as an absolute path, which ACP requires.
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
