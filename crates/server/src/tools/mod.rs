//! Tools of agents: lists and calls the built-in tools and the programs of `tools` folders, for every protocol.
//!
//! Owns: the limits on running programs, and the environment that gives a program access to the hub. The engine decides
//! who may use the tools of an agent; a tool acts with the rights of its caller.

mod built_in;
mod environment;
mod programs;

pub use environment::AgentEnvironment;
pub use programs::{ProgramCall, ToolFuture, ToolPrograms};

use crate::App;
use parlor_engine::ports::{FolderError, ToolProgram};
use parlor_model::query::MayUseTools;
use parlor_model::{
    AgentId, Caller, Mailbox, Refusal, ToolCall, ToolDescription, ToolFailure, ToolFailureCode, ToolResult,
};
use parlor_wire::broker::codes;
use parlor_wire::tools::BuiltInTool;
use programs::ProgramSlots;

/// Why a call was refused before it began.
#[derive(Debug, PartialEq, Eq)]
pub enum ToolRefusal {
    Refused(Refusal),
    /// The agent has no tool with this name.
    Unknown,
}

impl From<Refusal> for ToolRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// State of the tools of a hub.
#[derive(Default)]
pub struct Tools {
    slots: ProgramSlots,
}

/// The tools of an agent, by name.
pub async fn list(app: &App, caller: &Caller, agent: &AgentId) -> Result<Vec<ToolDescription>, Refusal> {
    permit(app, caller, Mailbox::of(agent.clone())).await?;
    let programs = programs_of(app, agent).await.map_err(|_| Refusal::Unavailable)?;
    let describe = |program: ToolProgram| ToolDescription {
        name: program.name,
        description: program.description,
        schema: program.input_schema,
        timeout: Some(program.timeout),
    };
    let mut tools: Vec<_> = BuiltInTool::ALL.into_iter().map(BuiltInTool::description).collect();
    tools.extend(programs.into_iter().map(describe));
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tools)
}

/// Reads the folders of all agents again. With an agent, the caller must be allowed to use its tools.
pub async fn refresh(app: &App, caller: &Caller, agent: Option<&AgentId>) -> Result<(), Refusal> {
    match agent {
        Some(agent) => permit(app, caller, Mailbox::of(agent.clone())).await?,
        None => app.hub.may(caller, parlor_model::query::GetAuthContext).await?,
    }
    let folders = app.config.folders.clone();
    tokio::task::spawn_blocking(move || folders.rescan()).await.map_err(|_| Refusal::Unavailable)
}

/// Calls a tool, which may take minutes. Dropping the future ends the program that the tool runs.
pub async fn execute(app: &App, caller: &Caller, call: ToolCall) -> Result<ToolResult, ToolRefusal> {
    let mailbox = Mailbox { agent: call.agent.clone(), session: call.session.clone() };
    permit(app, caller, mailbox).await?;
    let outcome = match BuiltInTool::parse(&call.tool) {
        Some(tool) => built_in::call(app, caller, tool, &call).await,
        None => match programs_of(app, &call.agent).await {
            Ok(programs) => {
                let program = programs.into_iter().find(|program| program.name == call.tool);
                let program = program.ok_or(ToolRefusal::Unknown)?;
                programs::call(app, caller, program, &call).await
            }
            Err(error) => Err(ToolFailure::new(ToolFailureCode::Unavailable, error.to_string())),
        },
    };
    Ok(ToolResult { tool: call.tool, at: app.hub.now(), outcome })
}

async fn permit(app: &App, caller: &Caller, mailbox: Mailbox) -> Result<(), Refusal> {
    app.hub.may(caller, MayUseTools { mailbox }).await
}

/// The programs of an agent. One with the name of a built-in tool is left out.
async fn programs_of(app: &App, agent: &AgentId) -> Result<Vec<ToolProgram>, FolderError> {
    let (folders, agent) = (app.config.folders.clone(), agent.clone());
    let programs = tokio::task::spawn_blocking(move || folders.tools(&agent)).await;
    let mut programs = match programs.unwrap_or(Err(FolderError::Io)) {
        // Not every agent of a hub is on disk.
        Err(FolderError::NoFolder | FolderError::NoRoot | FolderError::Missing) => Vec::new(),
        programs => programs?,
    };
    programs.retain(|program| BuiltInTool::parse(&program.name).is_none());
    Ok(programs)
}

/// The failure for a refusal of the engine.
fn refused(refusal: &Refusal, agent: &AgentId) -> ToolFailure {
    let code = match refusal {
        Refusal::Invalid(_) | Refusal::TooLarge { .. } => ToolFailureCode::InvalidInput,
        Refusal::AtCapacity | Refusal::RateLimited { .. } => ToolFailureCode::Busy,
        Refusal::Unavailable => ToolFailureCode::Unavailable,
        _ => ToolFailureCode::NotAllowed,
    };
    ToolFailure::new(code, codes::sentence(refusal, Some(agent.as_str())))
}
