//! What a gateway prints: who is there, how the connection does, who is asked and how that went.

use super::AgentEntry;
use crate::style::{TerminalStyle, escape_control};
use parlor_agents::gateway::GatewayNotice;
use parlor_agents::gateway::remote::ConnectionStatus;
use parlor_model::RunOutcome;
use std::fmt::Write;
use std::path::Path;
use url::Url;

pub fn beginning(server: &Url, data: &Path, agents: &[AgentEntry], paint: TerminalStyle) -> String {
    let mut text = String::from("\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {}  {value}", paint.dim(format!("{name:6}")));
    };
    line("Hub", paint.link(server.as_str().trim_end_matches('/')));
    line("Data", data.display().to_string());
    let column = agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
    for agent in agents {
        let directory = agent.recipe.directory.as_ref().map(|path| format!("  {}", path.display()));
        let name = paint.bold(format!("{:column$}", escape_control(&agent.name)));
        let kind = paint.dim(&agent.recipe.kind);
        line("Agent", format!("{name}  {kind}{}", directory.unwrap_or_default()));
    }
    let title = format!("\n  {} {}\n", paint.bold("Parlor gateway"), paint.dim(env!("CARGO_PKG_VERSION")));
    title + &text + "\n"
}

pub fn line(line: &ConnectionStatus, paint: TerminalStyle) -> String {
    match line {
        ConnectionStatus::Connected => format!("  {} connected\n", paint.good("●")),
        ConnectionStatus::Lost { why, again } => {
            let seconds = again.as_secs_f32();
            let again = paint.dim(format!("again in {seconds:.1} s"));
            format!("  {} lost: {}, {again}\n", paint.warning("○"), escape_control(why))
        }
    }
}

pub fn news(news: &GatewayNotice, paint: TerminalStyle) -> String {
    match news {
        GatewayNotice::Began { agent, room, by } => {
            let asked = paint.dim(format!("asked by {} in {}", escape_control(by), escape_control(room)));
            format!("  {} {}\n", paint.bold(escape_control(agent)), asked)
        }
        GatewayNotice::Ended { agent, room, how } => {
            let word = match how {
                RunOutcome::Complete => paint.good("answered"),
                RunOutcome::Failed(_) => paint.bad("failed"),
                _ => paint.warning("was stopped"),
            };
            format!(
                "  {} {word} {}\n",
                paint.bold(escape_control(agent)),
                paint.dim(format!("in {}", escape_control(room)))
            )
        }
        GatewayNotice::Dismissed { agent } => {
            format!("  {} is hosted elsewhere now, or was removed\n", paint.bold(escape_control(agent)))
        }
        GatewayNotice::Refused { message } => {
            format!("  {} {}\n", paint.warning("!"), escape_control(message))
        }
    }
}
