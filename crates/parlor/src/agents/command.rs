//! Implements `parlor agent …`, which manages the agents that the hub hosts itself.

use super::entry::{AgentEntry, absolute};
use super::local::LocalAgent;
use crate::admin::{AdminReply, AdminRequest, AgentRow};
use crate::admin_command;
use crate::arguments::AgentCommand;
use crate::settings::Settings;
use crate::style::{TerminalStyle, escape_control};
use crate::text_table::listing;
use anyhow::Context;
use parlor_agents::kinds::AgentConfig;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

pub async fn run(
    settings: &Settings,
    config: Option<PathBuf>,
    command: AgentCommand,
) -> anyhow::Result<String> {
    let mut note = String::new();
    let request = match command {
        AgentCommand::Add { name, kind, dir, owner, settings, program } => {
            let directory = Some(absolute(dir.as_deref().unwrap_or(Path::new(".")))?);
            let extra = settings.iter().map(|text| setting(text)).collect::<anyhow::Result<Map<_, _>>>()?;
            let agent_config =
                AgentConfig { kind, directory, command: program, extra, ..AgentConfig::default() };
            let entry = AgentEntry { name, config: agent_config };
            if let Some(missing) = entry.check()?.missing() {
                note = format!("{}: run parlor doctor for a fix.\n", escape_control(&missing.to_string()));
            }
            AdminRequest::AddAgent { agent: LocalAgent { owner, entry } }
        }
        AgentCommand::List => AdminRequest::ListAgents,
        AgentCommand::Rm { name } => AdminRequest::RemoveAgent { name },
        AgentCommand::Move { old, new } => AdminRequest::MoveAgent { from: old, to: new },
    };
    Ok(admin_command::execute_with(settings, config.as_deref(), request, None).await? + &note)
}

/// Parses `KEY=VALUE`. A value that is valid JSON is used as such; any other value is a string.
fn setting(text: &str) -> anyhow::Result<(String, Value)> {
    let (key, value) = text.split_once('=').with_context(|| format!("{text:?}: write KEY=VALUE"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((key.to_owned(), value))
}

pub fn render(reply: AdminReply, terminal_style: TerminalStyle) -> String {
    match reply {
        AdminReply::AgentAdded { name, running } => {
            let name = escape_control(&name);
            let when = if running { "It is online" } else { "It comes online when the hub starts" };
            format!("Added {name}. {when}: add it to a room and write @{name}.\n")
        }
        AdminReply::AgentMoved { from, to } => {
            format!("Moved {} to {}.\n", escape_control(&from), escape_control(&to))
        }
        AdminReply::AgentRemoved { name } => format!("Removed {}.\n", escape_control(&name)),
        AdminReply::Agents { agents } if !agents.is_empty() => listing(
            ["NAME", "KIND", "STATUS", "DIRECTORY"],
            &agents.into_iter().map(cells).collect::<Vec<_>>(),
            terminal_style,
        ),
        _ => "There are no agents yet. Try: parlor agent add echo command -- cat\n".into(),
    }
}

fn cells(agent: AgentRow) -> [String; 4] {
    [agent.name, agent.kind, agent.status, agent.directory.unwrap_or_default()]
}
