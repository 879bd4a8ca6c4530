//! Starts the programs that agents call as tools.

use parlor_agents::tool_program::ToolProcess;
use parlor_server::tools::{ProgramCall, ToolFuture, ToolPrograms};

/// Runs programs on the hub's machine, each in a process group of its own.
#[derive(Debug, Clone, Copy)]
pub struct LocalPrograms;

impl ToolPrograms for LocalPrograms {
    fn run(&self, call: ProgramCall) -> ToolFuture {
        let ProgramCall { program, input, environment } = call;
        let variables = environment.0.into_iter().map(|(name, value)| (name.into(), value.into()));
        let process = ToolProcess {
            program: program.program,
            directory: program.folder,
            input,
            timeout: program.timeout,
            environment: variables.collect(),
        };
        Box::pin(process.run())
    }
}
