//! Command-line interface: commands, flags and their help texts.
//!
//! Owns: names and help texts. Never: validates a flag that is also a setting. Such a flag stays text here
//! and is parsed by the setting's `SettingType`, so that flag, variable and file accept the same values.

use crate::admin::Role;
use crate::agents::gateway::GatewayArguments;
use crate::agents::join::JoinArguments;
use crate::chatmd::ChatmdCommand;
use crate::chatmd::bridge::BridgeArguments;
use crate::chatmd::watch::WatchArguments;
use crate::tool_command::ToolArguments;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::{collections::BTreeMap, path::PathBuf};

const EXAMPLES: &str = "\
Examples:
  parlor                                  start on http://127.0.0.1:7878
  parlor --data /srv/parlor               use another data directory
  parlor config example > parlor.toml     write every setting with its default
  parlor admin user add ada               add a user; the password is printed once
  parlor agent add coder acp:claude       add an agent that works in this folder
  parlor doctor                           check the installation
  parlor backup /backups/parlor.tar       back up the hub while it runs
  parlor watch .                          print the messages of .workplace/chat.md

Every setting is also an environment variable: PARLOR_LISTEN, PARLOR_DATA, …";

const GATEWAY_DATA: &str =
    "Directory for the gateway's credentials and state [default: ~/.local/share/parlor/gateway]";
const GATEWAY_CONFIG: &str = "TOML file with the server and the [[agent]] entries";

/// Self-hosted hub where people and AI agents talk in the same rooms.
#[derive(Debug, Parser)]
#[command(name = "parlor", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Address and port to listen on [default: 127.0.0.1:7878]
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<String>,
    /// Directory for all data that Parlor stores [default: ./parlor-data]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// Directory with one folder per agent
    #[arg(long, global = true, value_name = "DIR")]
    agents_root: Option<String>,
    /// Certificate chain in PEM format; enables HTTPS
    #[arg(long, global = true, value_name = "FILE")]
    tls_cert: Option<String>,
    /// Private key of the certificate, in PEM format
    #[arg(long, global = true, value_name = "FILE")]
    tls_key: Option<String>,
    /// TOML file with settings
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Global flags that the given top-level command does not use. They are hidden in its help and rejected.
fn unused_flags(command: &str) -> &'static [&'static str] {
    match command {
        "serve" | "config" | "doctor" => &[],
        "gateway" => &["listen", "agents_root", "tls_cert", "tls_key"],
        "join" => &["listen", "agents_root", "tls_cert", "tls_key", "config"],
        "completions" | "man" | "watch" | "bridge" | "chatmd" | "tool" => {
            &["listen", "data", "agents_root", "tls_cert", "tls_key", "config"]
        }
        _ => &["listen", "agents_root", "tls_cert", "tls_key"],
    }
}

/// Builds the clap definition. The help of each command lists only the global flags that the command uses.
pub fn command_line() -> clap::Command {
    let line = Arguments::command();
    let flags: Vec<clap::Arg> = line.get_arguments().cloned().collect();
    line.mut_subcommands(|command| {
        let unused = unused_flags(command.get_name());
        let is_gateway = matches!(command.get_name(), "gateway" | "join");
        let overridden = |flag: &clap::Arg| match flag.get_id().as_str() {
            name if unused.contains(&name) => Some(flag.clone().hide(true)),
            "data" if is_gateway => Some(flag.clone().help(GATEWAY_DATA)),
            "config" if is_gateway => Some(flag.clone().help(GATEWAY_CONFIG)),
            _ => None,
        };
        let flags: Vec<clap::Arg> = flags.iter().filter_map(overridden).collect();
        command.args(flags)
    })
}

impl Arguments {
    /// Parses the arguments of this process. Invalid arguments print an error and exit with code 2.
    pub fn from_process() -> Self {
        let mut line = command_line();
        let matches = line.get_matches_mut();
        let unused = matches.subcommand().and_then(|(command, _)| {
            let is_set = |flag: &&&str| matches!(matches.try_contains_id(flag), Ok(true));
            Some((command, unused_flags(command).iter().find(is_set)?))
        });
        if let Some((command, flag)) = unused {
            let flag = flag.replace('_', "-");
            let message = format!("`parlor {command}` does not use --{flag}");
            line.error(ErrorKind::ArgumentConflict, message).exit();
        }
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the settings given as flags, by setting key.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let flags = [
            ("listen", &self.listen),
            ("data", &self.data),
            ("agents_root", &self.agents_root),
            ("tls_cert", &self.tls_cert),
            ("tls_key", &self.tls_key),
        ];
        flags.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))).collect()
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the hub (the default command)
    Serve,
    /// Print or check the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Manage users and API keys, whether the hub is running or not
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Freeze a room so that no agent responds in it, or thaw it
    Freeze {
        /// ID of the room
        room: String,
        /// Thaw the room: allow its agents to respond again
        #[arg(long)]
        thaw: bool,
    },
    /// Manage the agents that the hub hosts itself, whether it is running or not
    Agent {
        #[command(subcommand)]
        command: AgentCommand,
    },
    /// Host agents on this machine for a local or remote hub
    Gateway(GatewayArguments),
    /// Pair this machine with a hub, using a pairing code that the hub shows
    Join(JoinArguments),
    /// List or call the tools of an agent, from a program that works for it
    Tool(ToolArguments),
    /// Print each new message of DIR/.workplace/chat.md as a line of JSON; needs no hub
    Watch(WatchArguments),
    /// Connect DIR/.workplace/chat.md with a room: lines become messages, and messages become lines
    Bridge(BridgeArguments),
    /// Append to or archive the message file of a project; needs no hub
    Chatmd {
        #[command(subcommand)]
        command: ChatmdCommand,
    },
    /// Check everything that the hub depends on and print a fix for each problem
    Doctor,
    /// Write a backup of all data to one file, whether the hub is running or not
    Backup {
        /// File to write; an existing file is replaced once the new backup is complete
        file: PathBuf,
    },
    /// Restore the data directory from a backup
    Restore {
        /// Backup file written by `parlor backup`
        file: PathBuf,
        /// Replace existing data
        #[arg(long)]
        replace: bool,
    },
    /// Print a completion script for a shell
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write the manual pages of all commands to a directory
    Man {
        /// Existing directory to write the pages to
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print a settings file that lists every default, commented out
    Example,
    /// Validate the settings and list every problem
    Check,
    /// Print the effective settings and the source of each; secrets are masked
    Show,
}

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Add an agent; to use it, add it to a room and mention it there
    Add {
        /// Name by which messages mention the agent
        name: String,
        /// Kind of the agent: claude, acp:claude, acp:codex, acp:gemini, acp:opencode, acp, command or model
        kind: String,
        /// Working directory of the agent [default: the current directory]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// User who owns the agent [default: the first admin]
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// Setting specific to this kind, such as model=… (repeatable)
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Program to run and its arguments, for kinds that run a program
        #[arg(last = true, value_name = "PROGRAM")]
        program: Vec<String>,
    },
    /// List the agents that the hub hosts
    List,
    /// Remove an agent; its messages stay
    Rm { name: String },
    /// Move an agent of the agents root to another id, with its folder, mail, sessions and rooms
    Move {
        /// Present or former id of the agent, such as researcher/analyzer
        old: String,
        /// New id of the agent
        new: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Manage the users who can sign in
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Print the audit log (sign-ins and administrative changes), newest entry first
    Audit {
        /// Maximum number of entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Print only entries with this action, such as sign_in_failed
        #[arg(long)]
        action: Option<String>,
        /// Print only actions of this user or API key (name or ID)
        #[arg(long)]
        actor: Option<String>,
        /// Print only actions on this user or object (name or ID)
        #[arg(long)]
        subject: Option<String>,
    },
    /// Manage API keys
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Manage the keys of clients that use the Ably protocol
    AblyKey {
        #[command(subcommand)]
        command: AblyKeyCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user
    Add {
        /// Username for signing in
        name: String,
        /// Role of the user
        #[arg(long, value_enum, default_value_t = Role::User)]
        role: Role,
        /// Name shown to other users
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// List all users
    List,
    /// Set a new password for a user and sign the user out everywhere
    ResetPassword {
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Disable the second factor of a user who lost it
    DisableSecondFactor { name: String },
    /// Remove a user and sign the user out everywhere
    Remove { name: String },
}

#[derive(Debug, Args)]
pub struct PasswordSource {
    /// Read the password from standard input; otherwise a password is generated and printed once
    #[arg(long)]
    pub password_stdin: bool,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create an API key; it is printed once
    Add {
        /// Name that describes the purpose of the key
        name: String,
        /// User on whose behalf the key acts
        #[arg(long)]
        user: String,
        /// Scope of the key: read, write, agents, hosting, sources, dead-letters, metrics, admin (repeatable)
        #[arg(long = "scope", required = true, num_args = 1.., value_delimiter = ',')]
        scopes: Vec<String>,
    },
    /// List the API keys; only their hashes are stored, so the secrets are not shown
    List,
    /// Revoke an API key
    Revoke {
        /// ID of the key, as shown by `token list`
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum AblyKeyCommand {
    /// Create a key, parlor.<id>:<secret>; it is printed once
    Create {
        /// Name that describes the purpose of the key
        name: String,
        /// Site admin who owns the key
        #[arg(long)]
        user: String,
        /// Operations that the key permits, by channel, as JSON
        #[arg(long, default_value = r#"{"*":["*"]}"#)]
        capability: String,
    },
    /// List the keys; the secrets are not shown
    List,
    /// Revoke a key and all its tokens
    Revoke {
        /// ID of the key, as shown by `ably-key list`
        id: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clap_definition_is_valid() {
        command_line().debug_assert();
        assert_eq!(command_line().get_name(), "parlor");
    }

    #[test]
    fn the_help_of_each_command_shows_only_the_flags_it_uses() {
        let mut line = command_line();
        line.build();
        let mut help = |path: &str| {
            let command = path.split(' ').fold(&mut line, |command, name| {
                command.find_subcommand_mut(name).unwrap_or_else(|| panic!("no {name} in {path}"))
            });
            command.render_long_help().to_string()
        };
        let all = ["--listen", "--data", "--agents-root", "--tls-cert", "--tls-key", "--config"];
        let check = |help: String, shown: &[&str]| {
            for flag in all {
                assert_eq!(help.contains(flag), shown.contains(&flag), "{flag}: {help}");
            }
        };
        for path in ["serve", "config check", "doctor"] {
            check(help(path), &all);
        }
        for path in ["agent add", "admin user add", "admin token list", "freeze", "backup", "gateway"] {
            check(help(path), &["--data", "--config"]);
        }
        check(help("join"), &["--data"]);
        for path in ["man", "watch", "bridge", "chatmd append", "chatmd archive"] {
            check(help(path), &[]);
        }
        assert!(help("gateway").contains("[default: ~/.local/share/parlor/gateway]"));
        assert!(help("agent list").contains("[default: ./parlor-data]"));
    }

    #[test]
    fn flags_are_accepted_before_and_after_the_command() {
        for line in ["parlor --data d serve --listen l", "parlor serve --listen l --data d"] {
            let flags = parse(line).flags();
            assert_eq!(flags, BTreeMap::from([("listen", "l".to_owned()), ("data", "d".to_owned())]));
        }
    }

    #[test]
    fn parsing_without_a_command_yields_none() {
        assert!(parse("parlor").command.is_none());
    }

    #[test]
    fn scopes_are_accepted_as_separate_values_as_a_list_and_as_repeated_flags() {
        for scopes in ["--scope a b", "--scope a,b", "--scope a --scope b"] {
            let parsed = parse(&format!("parlor admin token add ci --user ada {scopes}"));
            let Some(Command::Admin {
                command: AdminCommand::Token { command: TokenCommand::Add { scopes, .. } },
            }) = parsed.command
            else {
                panic!("expected `admin token add`");
            };
            assert_eq!(scopes, ["a", "b"]);
        }
        assert!(Arguments::try_parse_from("parlor admin token add ci --user ada".split(' ')).is_err());
    }

    #[test]
    fn a_watch_starts_at_one_place() {
        assert!(matches!(parse("parlor watch . --from-end").command, Some(Command::Watch(_))));
        let both = "parlor watch . --from-start --from-end".split(' ');
        assert!(command_line().try_get_matches_from(both).is_err());
    }

    #[track_caller]
    fn parse(line: &str) -> Arguments {
        let matches = command_line().try_get_matches_from(line.split(' ')).unwrap();
        Arguments::from_arg_matches(&matches).unwrap()
    }
}
