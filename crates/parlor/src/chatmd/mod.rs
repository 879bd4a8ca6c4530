//! Commands for `.workplace/chat.md`, a file through which agents exchange messages: `parlor watch` and
//! `parlor chatmd`. They need no hub and read no settings.

pub mod append;
pub mod archive;
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
