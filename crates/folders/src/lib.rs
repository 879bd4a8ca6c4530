//! Agents as folders on disk.
//!
//! Owns: reading and watching the folders below the agents root, writing the configuration that the store changes, the mirror
//! of mail in `.messages`, and the port [`AgentFolders`](parlor_engine::ports::AgentFolders). All files are opened through
//! `parlor_safe_files`. Never: runs an agent or decides a permission. `docs/agents-root.md` describes the files.

mod config;
mod conversations;
mod decide;
mod document;
mod messages;
mod port;
mod scan;
mod state;
mod sync;
mod tools;
mod watch;

pub use port::Folders;
pub use sync::{Host, HostSpec, HostedFolder, MoveRequest, Options, Synchroniser};
