//! Commands for `.workplace/chat.md`, a file through which agents exchange messages, and the bridges that the hub
//! runs itself. `parlor watch` and `parlor chatmd` need no hub; only the hub's own bridges use its settings.

pub mod append;
pub mod archive;
pub mod bridge;
pub mod configured;
pub mod hosted;
pub mod room_feed;
pub mod show;
pub mod watch;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ChatmdCommand {
    /// Append a message to DIR/.workplace/chat.md
    Append(append::AppendArguments),
    /// Move DIR/.workplace/chat.md to .workplace/memory/chat-DATE.md and start an empty one
    Archive(archive::ArchiveArguments),
}

/// Runs the command and returns the text to print.
pub fn run(command: ChatmdCommand) -> anyhow::Result<String> {
    match command {
        ChatmdCommand::Append(arguments) => append::run(&arguments),
        ChatmdCommand::Archive(arguments) => archive::run(&arguments),
    }
}
