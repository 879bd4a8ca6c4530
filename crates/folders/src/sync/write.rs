//! Writes of the configuration to disk.

use super::{DELETED, Stored};
use crate::config::{AgentDoc, SessionDoc};
use crate::document::Document;
use crate::scan::{AGENT_FILE, SESSIONS, create_folder, open_folder};
use parlor_model::{AgentId, Session, Subscription, Time};
use parlor_safe_files::Directory;
use std::io;

/// Writes the file of an agent. `file` is its present content.
pub fn agent(root: &Directory, stored: &Stored, file: Option<&Document>) -> io::Result<()> {
    let id = &stored.agent.id;
    let folder = create_folder(root, id)?;
    let mut document = file.cloned().unwrap_or_default();
    let doc = AgentDoc::of_store(&stored.agent, &stored.subscriptions);
    doc.write_to(id, &mut document, &stored.subscriptions);
    replace(&folder, AGENT_FILE, &document)
}

/// Writes the file of a session. `file` is its present content.
pub fn session(
    root: &Directory,
    session: &Session,
    subscriptions: &[Subscription],
    file: Option<&Document>,
) -> io::Result<()> {
    let folder = create_folder(root, &session.agent)?.create_below(SESSIONS)?;
    let mut document = file.cloned().unwrap_or_default();
    SessionDoc::of_store(session, subscriptions).write_to(&session.id, &mut document, subscriptions);
    replace(&folder, &format!("{}.json", session.id), &document)
}

/// Replaces a file unless it has this content already.
fn replace(folder: &Directory, name: &str, document: &Document) -> io::Result<()> {
    let content = document.render();
    let present = folder.read(name, content.len() as u64);
    if present.is_ok_and(|present| present.as_deref() == Some(content.as_bytes())) {
        return Ok(());
    }
    folder.replace(name, content.as_bytes())
}

/// Moves the folder of a removed agent to `.deleted`.
pub fn delete(root: &Directory, agent: &AgentId, now: Time) -> io::Result<()> {
    let Some((parent, name)) = parent_of(root, agent)? else { return Ok(()) };
    let deleted = root.create_below(DELETED)?;
    let new_name = format!("{}-{}", agent.as_str().replace('/', "%2F"), now.millis());
    parent.rename(name, &deleted, &new_name)
}

/// Moves the folder of an agent within the root.
pub fn rename(root: &Directory, from: &AgentId, to: &AgentId) -> io::Result<()> {
    let (parent, name) = parent_of(root, from)?.ok_or(io::ErrorKind::NotFound)?;
    match to.as_str().rsplit_once('/') {
        Some((above, new_name)) => {
            parent.rename(name, &create_folder(root, &AgentId::stored(above))?, new_name)
        }
        None => parent.rename(name, root, to.as_str()),
    }
}

/// The directory that contains the folder of an agent, and the name of the folder.
fn parent_of<'a>(root: &Directory, agent: &'a AgentId) -> io::Result<Option<(Directory, &'a str)>> {
    match agent.as_str().rsplit_once('/') {
        Some((above, name)) => {
            Ok(open_folder(root, &AgentId::stored(above))?.map(|directory| (directory, name)))
        }
        None => Ok(Some((root.clone(), agent.as_str()))),
    }
}
