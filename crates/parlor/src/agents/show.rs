//! Renders the output of `parlor gateway`: its agents, the connection status, and the start and end of runs.

use super::AgentEntry;
use crate::style::{TerminalStyle, escape_control};
use parlor_agents::gateway::GatewayNotice;
use parlor_agents::gateway::remote::ConnectionStatus;
use parlor_model::RunOutcome;
use std::fmt::Write;
use std::path::Path;
use url::Url;

pub fn startup(server: &Url, data: &Path, agents: &[AgentEntry], terminal_style: TerminalStyle) -> String {
    let mut text = String::from("\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {}  {value}", terminal_style.dim(format!("{name:6}")));
    };
    line("Hub", terminal_style.link(server.as_str().trim_end_matches('/')));
    line("Data", data.display().to_string());
    let column = agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
    for agent in agents {
        let directory = agent.config.directory.as_ref().map(|path| format!("  {}", path.display()));
        let name = terminal_style.bold(format!("{:column$}", escape_control(&agent.name)));
        let kind = terminal_style.dim(&agent.config.kind);
        line("Agent", format!("{name}  {kind}{}", directory.unwrap_or_default()));
    }
    let title = format!(
        "\n  {} {}\n",
        terminal_style.bold("Parlor gateway"),
        terminal_style.dim(env!("CARGO_PKG_VERSION"))
    );
    title + &text + "\n"
}

pub fn connection_status(status: &ConnectionStatus, terminal_style: TerminalStyle) -> String {
    match status {
        ConnectionStatus::Connected => format!("  {} connected\n", terminal_style.good("●")),
        ConnectionStatus::Lost { why, again } => {
            let seconds = again.as_secs_f32();
            let retry = terminal_style.dim(format!("retrying in {seconds:.1} s"));
            format!("  {} lost: {}, {retry}\n", terminal_style.warning("○"), escape_control(why))
        }
    }
}

pub fn notice(notice: &GatewayNotice, terminal_style: TerminalStyle) -> String {
    match notice {
        GatewayNotice::Began { agent, room, by } => {
            let trigger =
                terminal_style.dim(format!("asked by {} in {}", escape_control(by), escape_control(room)));
            format!("  {} {}\n", terminal_style.bold(escape_control(agent)), trigger)
        }
        GatewayNotice::Ended { agent, room, how } => {
            let outcome = match how {
                RunOutcome::Complete => terminal_style.good("answered"),
                RunOutcome::Failed(_) => terminal_style.bad("failed"),
                _ => terminal_style.warning("was stopped"),
            };
            format!(
                "  {} {outcome} {}\n",
                terminal_style.bold(escape_control(agent)),
                terminal_style.dim(format!("in {}", escape_control(room)))
            )
        }
        GatewayNotice::Dismissed { agent } => {
            format!(
                "  {} was removed, or is now hosted by another gateway\n",
                terminal_style.bold(escape_control(agent))
            )
        }
        GatewayNotice::Refused { message } => {
            format!("  {} {}\n", terminal_style.warning("!"), escape_control(message))
        }
    }
}
