//! Runs the command given on the command line and maps its result to an exit code.
//!
//! Exit codes: 0 success, 1 refused or failed, 2 invalid arguments.

use crate::{
    admin_command,
    agents::{self, gateway::GatewayCommand},
    arguments::{Arguments, Command, ConfigCommand},
    backup, chatmd, config_command, doctor, manual,
    serve::serve,
    settings::{self, Loaded, Sources},
    style::escape_control,
    tool_command,
};
use anyhow::Context;
use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Runs the command that the process was started with and returns the exit code.
pub fn run() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(arguments) = supervisor_arguments() {
        return parlor_agents::supervisor::run(arguments);
    }
    let arguments = Arguments::from_process();
    let flags = arguments.flags();
    let data = flags.get("data").cloned();
    let data = data.as_deref();
    let sources = Sources::from_process(flags, arguments.config.clone());
    let mut failed = false;
    let done = match arguments.command.unwrap_or(Command::Serve) {
        Command::Config { command: ConfigCommand::Example } => print(&settings::example()),
        Command::Config { command: ConfigCommand::Check } => {
            config_command::check(&sources).and_then(|text| print(&text))
        }
        Command::Config { command: ConfigCommand::Show } => {
            config_command::show(&sources).and_then(|text| print(&text))
        }
        Command::Serve => {
            loaded(&sources).and_then(|loaded| in_runtime(serve(loaded.settings, sources.config_file())))
        }
        Command::Admin { command } => loaded(&sources).and_then(|loaded| {
            let text = in_runtime(admin_command::run(&loaded.settings, command))?;
            print(&text)
        }),
        Command::Freeze { room, thaw } => loaded(&sources).and_then(|loaded| {
            let text = in_runtime(admin_command::freeze(&loaded.settings, room, thaw))?;
            print(&text)
        }),
        Command::Agent { command } => loaded(&sources).and_then(|loaded| {
            let text = in_runtime(agents::command::run(&loaded.settings, sources.config_file(), command))?;
            print(&text)
        }),
        Command::Gateway(gateway) => match gateway.command {
            None => in_runtime(agents::gateway::run(&gateway.hosting, data, arguments.config.as_deref())),
            Some(GatewayCommand::Doctor(hosting)) => {
                let hosting = gateway.hosting.and(hosting);
                in_runtime(doctor::examine_agents(&hosting, arguments.config.as_deref())).and_then(
                    |diagnosis| {
                        failed = diagnosis.failed;
                        print(&diagnosis.text)
                    },
                )
            }
        },
        Command::Join(join) => in_runtime(agents::join::run(&join, data)).and_then(|text| print(&text)),
        Command::Tool(tool) => in_runtime(tool_command::run(tool)).map(|call_failed| failed = call_failed),
        Command::Watch(watch) => chatmd::watch::run(&watch),
        Command::Bridge(bridge) => in_runtime(chatmd::bridge::run(&bridge)),
        Command::Chatmd { command } => chatmd::run(command).and_then(|text| print(&text)),
        Command::Doctor => in_runtime(async { Ok(doctor::examine(&sources).await) }).and_then(|diagnosis| {
            failed = diagnosis.failed;
            print(&diagnosis.text)
        }),
        Command::Backup { file } => loaded(&sources)
            .and_then(|loaded| in_runtime(backup::create(&loaded.settings.data, &file)))
            .and_then(|text| print(&text)),
        Command::Restore { file, replace } => loaded(&sources)
            .and_then(|loaded| backup::restore(&loaded.settings.data, &file, replace))
            .and_then(|text| print(&text)),
        Command::Completions { shell } => print(&manual::completions(shell)),
        Command::Man { directory } => manual::manual(directory.as_deref()).and_then(|text| print(&text)),
    };
    match done {
        // No error is printed: the diagnosis or the output of the tool printed above already explains the failure.
        Ok(()) if failed => ExitCode::FAILURE,
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A failed write to stderr is ignored: no other output is left to report it on.
            for line in format!("{error:#}").lines() {
                let _ = writeln!(io::stderr(), "{}", escape_control(line));
            }
            ExitCode::FAILURE
        }
    }
}

/// Returns the supervisor's arguments if another Parlor process started this one as a process supervisor.
#[cfg(target_os = "linux")]
fn supervisor_arguments() -> Option<impl Iterator<Item = std::ffi::OsString>> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == parlor_agents::supervisor::SUPERVISE).then_some(arguments)
}

fn loaded(sources: &Sources) -> anyhow::Result<Loaded> {
    settings::load(sources).map_err(|problems| config_command::combined_error(&problems))
}

fn in_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the asynchronous runtime")?.block_on(work)
}

/// Prints `text` to stdout. A closed pipe, as with `| head`, is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
