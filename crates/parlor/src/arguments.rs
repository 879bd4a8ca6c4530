//! The command line.
//!
//! Owns: names and help texts. Never: checks a value that is also a setting; a flag is text
//! here and is read by the setting's own form, so all ways of setting it agree.

use crate::admin::Role;
use crate::agents::gateway::GatewayArguments;
use crate::agents::join::JoinArguments;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::{collections::BTreeMap, path::PathBuf};

const EXAMPLES: &str = "\
Examples:
  parlor                                  start on http://127.0.0.1:7878
  parlor --data /srv/parlor               keep the data elsewhere
  parlor config example > parlor.toml     every setting, with its default
  parlor admin user add ada               a person, with a password printed once
  parlor agent add coder acp:claude       an agent, in this folder
  parlor doctor                           is all well?
  parlor backup /backups/parlor.tar       everything in one file, while the hub runs

Every setting is also a variable: PARLOR_LISTEN, PARLOR_DATA, …";

const GATEWAY_DATA: &str =
    "Directory for what a gateway must not forget [default: ~/.local/share/parlor/gateway]";
const GATEWAY_CONFIG: &str = "File with the server and [[agent]]s, in TOML";

/// One self-hosted hub where people and AI agents talk in the same rooms.
#[derive(Debug, Parser)]
#[command(name = "parlor", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Address and port to listen on [default: 127.0.0.1:7878]
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<String>,
    /// Directory for everything Parlor keeps [default: ./parlor-data]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<String>,
    /// Certificate chain, in PEM: Parlor then speaks HTTPS
    #[arg(long, global = true, value_name = "FILE")]
    tls_cert: Option<String>,
    /// The certificate's private key, in PEM
    #[arg(long, global = true, value_name = "FILE")]
    tls_key: Option<String>,
    /// File with settings, in TOML
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What a command of this name has no use for of the flags that can stand with every command.
fn idle_flags(command: &str) -> &'static [&'static str] {
    match command {
        "serve" | "config" | "doctor" => &[],
        "gateway" => &["listen", "tls_cert", "tls_key"],
        "join" => &["listen", "tls_cert", "tls_key", "config"],
        "completions" | "man" => &["listen", "data", "tls_cert", "tls_key", "config"],
        _ => &["listen", "tls_cert", "tls_key"],
    }
}

/// The command line, on which each command shows the flags that it uses.
pub fn command_line() -> clap::Command {
    let line = Arguments::command();
    let flags: Vec<clap::Arg> = line.get_arguments().cloned().collect();
    line.mut_subcommands(|command| {
        let idle = idle_flags(command.get_name());
        let of_gateway = matches!(command.get_name(), "gateway" | "join");
        let shown = |flag: &clap::Arg| match flag.get_id().as_str() {
            name if idle.contains(&name) => Some(flag.clone().hide(true)),
            "data" if of_gateway => Some(flag.clone().help(GATEWAY_DATA)),
            "config" if of_gateway => Some(flag.clone().help(GATEWAY_CONFIG)),
            _ => None,
        };
        let flags: Vec<clap::Arg> = flags.iter().filter_map(shown).collect();
        command.args(flags)
    })
}

impl Arguments {
    /// Those of this process. Where they are not understood, it ends here with a sentence.
    pub fn of_process() -> Self {
        let mut line = command_line();
        let matches = line.get_matches_mut();
        let idle = matches.subcommand().and_then(|(command, _)| {
            let given = |flag: &&&str| matches!(matches.try_contains_id(flag), Ok(true));
            Some((command, idle_flags(command).iter().find(given)?))
        });
        if let Some((command, flag)) = idle {
            let flag = flag.replace('_', "-");
            let words = format!("`parlor {command}` has no use for --{flag}");
            line.error(ErrorKind::ArgumentConflict, words).exit();
        }
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The settings that were given as flags, by their keys.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let flags = [
            ("listen", &self.listen),
            ("data", &self.data),
            ("tls_cert", &self.tls_cert),
            ("tls_key", &self.tls_key),
        ];
        flags.into_iter().filter_map(|(key, value)| Some((key, value.clone()?))).collect()
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the hub (what `parlor` alone does)
    Serve,
    /// Look at the settings
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Manage people and API keys, whether the hub is running or not
    Admin {
        #[command(subcommand)]
        command: AdminCommand,
    },
    /// Silence every agent in a room, or let them speak again
    Freeze {
        /// The id of the room
        room: String,
        /// Let them speak again
        #[arg(long)]
        thaw: bool,
    },
    /// Agents that the hub hosts itself, whether it is running or not
    Agent {
        #[command(subcommand)]
        command: AgentCommand,
    },
    /// Host agents on this machine for a hub that may be anywhere
    Gateway(GatewayArguments),
    /// Pair this machine with a hub, by a code that the hub shows
    Join(JoinArguments),
    /// Look at everything a hub needs, and say what to do where it is not well
    Doctor,
    /// Write everything the hub keeps into one file, while it runs or not
    Backup {
        /// The file to write; an older one of that name is replaced when the new one is whole
        file: PathBuf,
    },
    /// Start over from a backup
    Restore {
        /// A file that `parlor backup` wrote
        file: PathBuf,
        /// Also when there is data already
        #[arg(long)]
        replace: bool,
    },
    /// Print what lets a shell complete these commands
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands into a directory
    Man {
        /// Where to write them; it must exist
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print a settings file with every default, commented out
    Example,
    /// Say whether the settings are good, or everything that is wrong with them
    Check,
    /// Print the settings that hold and where each came from; secrets are hidden
    Show,
}

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Add an agent; bring it into a room and mention it there
    Add {
        /// The name to mention it by
        name: String,
        /// What it is: claude, acp:claude, acp:codex, acp:gemini, acp:opencode, acp, command or model
        kind: String,
        /// The folder it works in [default: this one]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Whose it is [default: the first admin]
        #[arg(long, value_name = "NAME")]
        owner: Option<String>,
        /// Something that only this kind knows, such as model=… (several allowed)
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// The program to run, for kinds that run one
        #[arg(last = true, value_name = "PROGRAM")]
        program: Vec<String>,
    },
    /// List them
    List,
    /// Remove one; what it said stays
    Rm { name: String },
}

#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// People who can sign in
    User {
        #[command(subcommand)]
        command: UserCommand,
    },
    /// Print who signed in and who changed what, newest first
    Audit {
        /// How many entries
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Only one kind, such as sign_in_failed
        #[arg(long)]
        action: Option<String>,
        /// Only what this person or key did (a name or an id)
        #[arg(long)]
        actor: Option<String>,
        /// Only what was done to this person or thing (a name or an id)
        #[arg(long)]
        subject: Option<String>,
    },
    /// API keys for programs
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a person
    Add {
        /// The name to sign in with
        name: String,
        /// What the person may do
        #[arg(long, value_enum, default_value_t = Role::User)]
        role: Role,
        /// The name others see
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// List everyone
    List,
    /// Give a person a new password and end their sessions
    ResetPassword {
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Turn off the second factor of a person who lost it
    DisableSecondFactor { name: String },
    /// Remove a person and end their sessions
    Remove { name: String },
}

#[derive(Debug, Args)]
pub struct PasswordSource {
    /// Read the password from standard input; otherwise one is made and printed once
    #[arg(long)]
    pub password_stdin: bool,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make an API key; it is printed once
    Add {
        /// What the key is for
        name: String,
        /// On whose behalf it acts
        #[arg(long)]
        user: String,
        /// What it may be used for: read, write, agents, hosting, sources, dead-letters, metrics, admin (several allowed)
        #[arg(long = "scope", required = true, num_args = 1.., value_delimiter = ',')]
        scopes: Vec<String>,
    },
    /// List the keys; the keys themselves are not kept
    List,
    /// Make a key useless
    Revoke {
        /// The id that `token list` shows
        id: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        command_line().debug_assert();
        assert_eq!(command_line().get_name(), "parlor");
    }

    #[test]
    fn each_command_shows_the_flags_that_it_uses() {
        let mut line = command_line();
        line.build();
        let mut help = |path: &str| {
            let command = path.split(' ').fold(&mut line, |command, name| {
                command.find_subcommand_mut(name).unwrap_or_else(|| panic!("no {name} in {path}"))
            });
            command.render_long_help().to_string()
        };
        let check = |help: String, shown: &[&str]| {
            for flag in ["--listen", "--data", "--tls-cert", "--tls-key", "--config"] {
                assert_eq!(help.contains(flag), shown.contains(&flag), "{flag}: {help}");
            }
        };
        let all = ["--listen", "--data", "--tls-cert", "--tls-key", "--config"];
        for path in ["serve", "config check", "doctor"] {
            check(help(path), &all);
        }
        for path in ["agent add", "admin user add", "admin token list", "freeze", "backup", "gateway"] {
            check(help(path), &["--data", "--config"]);
        }
        check(help("join"), &["--data"]);
        check(help("man"), &[]);
        assert!(help("gateway").contains("[default: ~/.local/share/parlor/gateway]"));
        assert!(help("agent list").contains("[default: ./parlor-data]"));
    }

    #[test]
    fn flags_stand_before_or_after_the_command() {
        for line in ["parlor --data d serve --listen l", "parlor serve --listen l --data d"] {
            let flags = parse(line).flags();
            assert_eq!(flags, BTreeMap::from([("listen", "l".to_owned()), ("data", "d".to_owned())]));
        }
    }

    #[test]
    fn no_command_means_serve() {
        assert!(parse("parlor").command.is_none());
    }

    #[test]
    fn scopes_can_be_given_in_every_way_people_try() {
        for scopes in ["--scope a b", "--scope a,b", "--scope a --scope b"] {
            let parsed = parse(&format!("parlor admin token add ci --user ada {scopes}"));
            let Some(Command::Admin {
                command: AdminCommand::Token { command: TokenCommand::Add { scopes, .. } },
            }) = parsed.command
            else {
                panic!("not understood as a token");
            };
            assert_eq!(scopes, ["a", "b"]);
        }
        assert!(Arguments::try_parse_from("parlor admin token add ci --user ada".split(' ')).is_err());
    }

    #[track_caller]
    fn parse(line: &str) -> Arguments {
        let matches = command_line().try_get_matches_from(line.split(' ')).unwrap();
        Arguments::from_arg_matches(&matches).unwrap()
    }
}
