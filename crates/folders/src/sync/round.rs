//! One comparison of all folders with the stored agents.

use super::{Stored, SyncLoop, is_below, write};
use crate::config::{AgentDoc, DocDigest, SessionDoc};
use crate::decide::{Newer, newer};
use crate::messages::Existence;
use crate::port::instructions;
use crate::scan::{self, AGENT_FILE, FoundAgent, Problem, SESSIONS, path_of};
use crate::state::Known;
use crate::sync::HostSpec;
use parlor_engine::HUB;
use parlor_engine::agent_changes::AgentChanges;
use parlor_engine::ports::FolderInfo;
use parlor_model::command::{AgentRegistration, ConfigureAgent, SessionConfig};
use parlor_model::query::{FoundAgent as Found, GetAgent, GetMe, ListAgents};
use parlor_model::{AgentId, Caller, GatewayId, Mailbox, Pattern, Refusal, SessionId, SiteRole};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

impl SyncLoop {
    /// Compares everything on disk with the stored agents, of which those in `changes` are read again, and appends new mail.
    pub(super) async fn round(&mut self, changes: &AgentChanges) -> io::Result<()> {
        self.read_stored(changes).await?;
        self.check_root()?;
        let scan = self.scan_tree().await?;
        let mut problems = scan.problems.clone();
        self.remove_deleted(&scan, &mut problems).await?;
        for (id, found) in &scan.agents {
            if let Some(found) = found {
                self.compare(id, found, &mut problems).await?;
            }
        }
        self.write_new(&scan, &mut problems).await?;
        self.scan = scan;
        self.update_hosting();
        self.mirror_mail(changes, &mut problems).await?;
        self.mirror_conversations(changes, &mut problems).await;
        self.report(problems);
        self.state.save()
    }

    /// Reads the agents that have changed.
    async fn read_stored(&mut self, changes: &AgentChanges) -> io::Result<()> {
        let changed: Vec<AgentId> = if changes.everything {
            let all = self.hub.read(&self.caller(), ListAgents).await.map_err(unreadable)?;
            let own: BTreeSet<AgentId> =
                all.into_iter().filter(|agent| agent.owner == self.owner).map(|agent| agent.id).collect();
            self.stored.retain(|id, _| own.contains(id));
            own.into_iter().collect()
        } else {
            changes.agents.iter().cloned().collect()
        };
        for id in changed {
            self.read_agent(&id).await?;
        }
        Ok(())
    }

    async fn read_agent(&mut self, id: &AgentId) -> io::Result<()> {
        match self.hub.read(&self.caller(), GetAgent { id: id.clone() }).await {
            Ok(Found::Own { agent, subscriptions, sessions }) => {
                self.stored.insert(id.clone(), Stored { agent, subscriptions, sessions });
            }
            Ok(Found::OfAnother(_)) | Err(Refusal::NotFound(_)) => {
                self.stored.remove(id);
            }
            Err(refusal) => return Err(unreadable(refusal)),
        }
        Ok(())
    }

    /// Reads the tree, again if a directory was not watched yet while it was read.
    async fn scan_tree(&mut self) -> io::Result<scan::Scan> {
        const ATTEMPTS: usize = 3;
        let root = self.folders.root().clone();
        let mut found = scan::Scan::default();
        for _ in 0..ATTEMPTS {
            let root = root.clone();
            let scanned = tokio::task::spawn_blocking(move || scan::scan(&root)).await;
            found = scanned.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
            found.directories.push(self.mirror.directory().path().to_owned());
            if !self.watch.set(&found.directories) {
                break;
            }
        }
        Ok(found)
    }

    /// Moves the folders of agents that the hub has removed out of the tree.
    async fn remove_deleted(
        &mut self,
        scan: &scan::Scan,
        problems: &mut BTreeSet<Problem>,
    ) -> io::Result<()> {
        let known = &self.state.state.agents;
        let gone: Vec<AgentId> = known.keys().filter(|id| !self.stored.contains_key(*id)).cloned().collect();
        if gone.is_empty() {
            return Ok(());
        }
        // The agents of a removed account are gone too, but that is no reason to move all folders.
        self.hub.read(&self.caller(), GetMe).await.map_err(|_| {
            io::Error::other(
                "the account that the agents belong to does not exist; see the setting agents_owner",
            )
        })?;
        for id in gone {
            if scan.is_present(&id) {
                if let Err(error) = write::delete(self.folders.root(), &id, self.hub.now()) {
                    let path = path_of(&self.root_path, &id);
                    problems.insert(Problem { path, reason: error.to_string() });
                    continue;
                }
                tracing::info!(agent = %id, "the folder of a removed agent was moved to .deleted");
            }
            self.state.state.agents.remove(&id);
            self.hosted.remove(&id);
        }
        Ok(())
    }

    /// Applies what changed in the folder of an agent to the store, or the other way round.
    async fn compare(
        &mut self,
        id: &AgentId,
        found: &FoundAgent,
        problems: &mut BTreeSet<Problem>,
    ) -> io::Result<()> {
        let folder = path_of(&self.root_path, id);
        // It was moved to `.deleted` in this round.
        if !folder.is_dir() {
            return Ok(());
        }
        let stored = self.stored.get(id).cloned();
        let known = self.state.state.agents.get(id).cloned().unwrap_or_default();
        let last = Some(&*known.digest).filter(|digest| !digest.is_empty());
        let stored_doc =
            stored.as_ref().map(|stored| AgentDoc::of_store(&stored.agent, &stored.subscriptions));
        let side = match &stored_doc {
            Some(doc) => newer(&found.doc.digest(), &doc.digest(), last),
            None => Newer::Disk,
        };
        let doc = match (&stored_doc, side) {
            (Some(doc), Newer::Store) => doc.clone(),
            _ => found.doc.clone(),
        };
        let file = folder.join(AGENT_FILE);
        let mut problem = |path: &Path, reason: String| {
            problems.insert(Problem { path: path.to_owned(), reason });
        };
        let spec = HostSpec {
            id: id.clone(),
            name: doc.name.clone(),
            folder: folder.clone(),
            default_model: doc.text_setting("defaultModel"),
            work_dirs: work_dirs(&self.root_path, &folder, &doc, |reason| problem(&file, reason)),
            host: found.host.clone(),
            instructions: instructions(self.folders.root(), id).unwrap_or_else(|error| {
                problem(&folder.join(scan::CLAUDE_MD), error.to_string());
                String::new()
            }),
        };
        let hosted = match self.host.check(&spec) {
            Ok(hosted) => hosted,
            Err(reason) => {
                problem(&file, reason);
                return Ok(());
            }
        };
        let registration = AgentRegistration {
            has_lasting_id: true,
            gateway: GatewayId::stored(HUB),
            id: id.clone(),
            name: doc.name.clone(),
            kind: hosted.kind,
            working_directory: Some(hosted.directory.display().to_string().into()),
            capabilities: vec!["rewind".into()],
            model: None,
            slash_commands: None,
            mcp_servers: None,
        };
        let changed_sessions = compare_sessions(found, stored.as_ref(), &known).0;
        let is_registered = stored.as_ref().is_some_and(|stored| {
            let host = &stored.agent.host;
            host.gateway.as_ref() == Some(&registration.gateway)
                && host.kind == registration.kind
                && host.working_directory == registration.working_directory
                && stored.agent.name == registration.name
        });
        let is_configured = side != Newer::Disk && is_registered;
        if !is_configured || !changed_sessions.is_empty() {
            let command = |sessions: Vec<SessionConfig>| ConfigureAgent {
                owner: self.owner.clone(),
                creates: stored.is_none(),
                registration: registration.clone(),
                description: doc.description.clone(),
                settings: doc.settings(),
                subscriptions: doc.subscriptions.iter().cloned().collect::<Vec<Pattern>>(),
                sessions,
            };
            match self.hub.execute(&Caller::OPERATOR, command(changed_sessions.clone())).await {
                Ok(_) => {
                    tracing::info!(agent = %id, "the configuration of an agent was read from its folder")
                }
                // A client has removed it: the next round moves its folder.
                Err(Refusal::NotFound(_)) if stored.is_some() => return Ok(()),
                Err(Refusal::Unavailable) => return Err(io::Error::other("the store accepts no writes")),
                Err(refusal) if changed_sessions.is_empty() => problem(&file, sentence(&refusal)),
                // The sessions are applied one by one, so that an invalid one does not hold back the others.
                Err(_) => {
                    if let Err(refusal) = self.hub.execute(&Caller::OPERATOR, command(Vec::new())).await {
                        problem(&file, sentence(&refusal));
                    } else {
                        for session in changed_sessions {
                            let path = folder.join(SESSIONS).join(format!("{}.json", session.id));
                            let one = command(vec![session]);
                            if let Err(refusal) = self.hub.execute(&Caller::OPERATOR, one).await {
                                problem(&path, sentence(&refusal));
                            }
                        }
                    }
                }
            }
            self.read_agent(id).await?;
        }
        let Some(stored) = self.stored.get(id).cloned() else { return Ok(()) };
        if stored.agent.host.gateway.as_ref() != Some(&registration.gateway) {
            // Another gateway hosts an agent with this id, or the command was refused.
            return Ok(());
        }
        // The id of a renamed folder is corrected, so that its old id can be used again.
        let is_renamed = found.named.as_ref().is_some_and(|named| named != id);
        if (side == Newer::Store || is_renamed)
            && let Err(error) = write::agent(self.folders.root(), &stored, Some(&found.file))
        {
            problem(&file, error.to_string());
            return Ok(());
        }
        let mut failed = Vec::new();
        for session in compare_sessions(found, Some(&stored), &known).1 {
            let Some((stored, subscriptions)) =
                stored.sessions.iter().find(|(stored, _)| stored.id == session)
            else {
                continue;
            };
            let file = found.sessions.get(&session).map(|found| &found.file);
            if let Err(error) = write::session(self.folders.root(), stored, subscriptions, file) {
                problem(&folder.join(SESSIONS).join(format!("{session}.json")), error.to_string());
                failed.push(session);
            }
        }
        self.remember(id, &stored, found, &failed);
        self.missing.remove(id);
        self.hosted.insert(id.clone(), spec);
        Ok(())
    }

    /// Remembers the configuration that file and store have in common now.
    /// Sessions whose file could not be written are written by a later round.
    fn remember(&mut self, id: &AgentId, stored: &Stored, found: &FoundAgent, failed: &[SessionId]) {
        let mut known = self.state.state.agents.remove(id).unwrap_or_default();
        let doc = AgentDoc::of_store(&stored.agent, &stored.subscriptions).digest();
        let before = std::mem::take(&mut known.digest);
        // A refused file differs from the store and from the last common configuration: it stays the newer side.
        let is_common = doc == found.doc.digest() || before == found.doc.digest();
        known.digest = if is_common { doc } else { before };
        for (session, subscriptions) in
            stored.sessions.iter().filter(|(session, _)| !failed.contains(&session.id))
        {
            let doc = SessionDoc::of_store(session, subscriptions).digest();
            let file = found.sessions.get(&session.id).map(|found| found.doc.digest());
            let last = known.sessions.get(&session.id);
            if file.is_none() || file.as_ref() == Some(&doc) || file.as_ref() == last {
                known.sessions.insert(session.id.clone(), doc);
            }
        }
        self.state.state.agents.insert(id.clone(), known);
    }

    /// Creates folders of agents that were created in the hub, and finds the missing ones.
    async fn write_new(&mut self, scan: &scan::Scan, problems: &mut BTreeSet<Problem>) -> io::Result<()> {
        let without_folder: Vec<AgentId> =
            self.stored.keys().filter(|id| !scan.is_present(id)).cloned().collect();
        let mut missing = BTreeSet::new();
        for id in without_folder {
            let host = &self.stored[&id].agent.host;
            let was_here = host.gateway.as_ref().is_some_and(|gateway| gateway.as_str() == HUB)
                && host.working_directory.as_deref().is_some_and(|path| is_below(path, &self.root_path));
            if was_here || self.state.state.agents.contains_key(&id) {
                if !self.missing.contains(&id) {
                    tracing::warn!(agent = %id, "the folder of an agent is missing; its mail is kept");
                }
                self.hosted.remove(&id);
                missing.insert(id);
            } else if host.gateway.is_none() && !scan::may_have_folder(&id) {
                let reason =
                    "its id contains a name that is reserved in the folder of an agent; it has no folder"
                        .into();
                problems.insert(Problem { path: path_of(&self.root_path, &id), reason });
            } else if host.gateway.is_none() {
                let stored = self.stored[&id].clone();
                // Its sessions are written when it is compared below.
                if let Err(error) = write::agent(self.folders.root(), &stored, None) {
                    let path = path_of(&self.root_path, &id);
                    problems.insert(Problem { path, reason: error.to_string() });
                    continue;
                }
                let file = AgentDoc::of_store(&stored.agent, &stored.subscriptions);
                let known = Known { digest: file.digest(), sessions: BTreeMap::new() };
                self.state.state.agents.insert(id.clone(), known);
                self.host_new(&id, problems).await?;
            }
        }
        self.missing = missing;
        Ok(())
    }

    /// Hosts an agent whose folder was written in this round.
    async fn host_new(&mut self, id: &AgentId, problems: &mut BTreeSet<Problem>) -> io::Result<()> {
        let root = self.folders.root().clone();
        let scanned = tokio::task::spawn_blocking(move || scan::scan(&root)).await;
        let scan = scanned.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
        if let Some(Some(found)) = scan.agents.get(id) {
            self.compare(id, found, problems).await?;
        }
        // Its directories are watched by the next round, which the write itself causes.
        self.folders.wake.notify_one();
        Ok(())
    }

    fn update_hosting(&mut self) {
        self.hosted.retain(|id, _| self.stored.contains_key(id));
        self.host.host(self.hosted.values().cloned().collect());
    }

    async fn mirror_mail(
        &mut self,
        changes: &AgentChanges,
        problems: &mut BTreeSet<Problem>,
    ) -> io::Result<()> {
        let stored = &self.stored;
        let has_folder = |id: &AgentId| self.hosted.contains_key(id) || self.missing.contains(id);
        let exists = |mailbox: &Mailbox| {
            let Some(agent) = stored.get(&mailbox.agent).filter(|_| has_folder(&mailbox.agent)) else {
                return Existence::No;
            };
            match &mailbox.session {
                None => Existence::Yes,
                Some(id) if agent.sessions.iter().any(|(session, _)| session.id == *id) => Existence::Yes,
                Some(_) => Existence::Agent,
            }
        };
        let messages = &mut self.state.state.messages;
        self.mirror.import(&self.hub, messages, exists, problems).await.map_err(unreadable)?;
        self.append_mail(changes, problems).await;
        Ok(())
    }

    async fn append_mail(&mut self, changes: &AgentChanges, problems: &mut BTreeSet<Problem>) {
        let stored = &self.stored;
        let has_folder = |id: &AgentId| self.hosted.contains_key(id) || self.missing.contains(id);
        let mut mailboxes: BTreeSet<Mailbox> =
            changes.mail.iter().chain(changes.settled.keys()).cloned().collect();
        for (id, agent) in stored {
            let sessions = agent.sessions.iter().map(|(session, _)| Some(session.id.clone()));
            let own = sessions.chain([None]).map(|session| Mailbox { agent: id.clone(), session });
            mailboxes.extend(own.filter(|mailbox| changes.everything || !self.mirror.is_compared(mailbox)));
        }
        let none = BTreeSet::new();
        mailboxes.retain(|mailbox| has_folder(&mailbox.agent));
        let messages = &mut self.state.state.messages;
        for mailbox in &mailboxes {
            let settled = changes.settled.get(mailbox).unwrap_or(&none);
            // A mailbox whose file cannot be written is compared again by the next round.
            if let Err(error) = self.mirror.append(&self.hub, messages, mailbox, settled).await {
                let path = self.mirror.path_of(mailbox);
                problems.insert(Problem { path, reason: error.to_string() });
            }
        }
        let is_changed = changes.everything || changes.unmatched || !self.mirror.is_unmatched_compared();
        // A message without a mailbox may have been meant for any user, so only site admins may read it.
        if is_changed
            && self.hub.read(&self.caller(), GetMe).await.is_ok_and(|owner| owner.role == SiteRole::Admin)
            && let Err(error) = self.mirror.append_unmatched(&self.hub, &mut self.state.state.messages).await
        {
            let path = self.mirror.path_of_unmatched();
            problems.insert(Problem { path, reason: error.to_string() });
        }
    }

    /// Appends new entries of conversation logs. Agents whose folder is missing have no place for them.
    async fn mirror_conversations(&mut self, changes: &AgentChanges, problems: &mut BTreeSet<Problem>) {
        let caller = self.caller();
        let mut changed = changes.conversations.clone();
        for (id, agent) in &self.stored {
            let sessions = agent.sessions.iter().map(|(session, _)| &session.id);
            let unread =
                sessions.filter(|session| changes.everything || !self.conversations.is_compared(id, session));
            changed.extend(unread.map(|session| (id.clone(), session.clone())));
        }
        for (id, session) in changed.iter().filter(|(id, _)| self.hosted.contains_key(id)) {
            let (root, agent) = (self.folders.root().clone(), id.clone());
            let open = move || match scan::open_folder(&root, &agent)? {
                Some(folder) => folder.create_below(SESSIONS),
                None => Err(io::ErrorKind::NotFound.into()),
            };
            let appended = self.conversations.append(&self.hub, &caller, id, session, open).await;
            if let Err(error) = appended {
                let path = path_of(&self.root_path, id).join(SESSIONS).join(format!("{session}.jsonl"));
                problems.insert(Problem { path, reason: error.to_string() });
            }
        }
    }

    /// Appends new mail and new entries without reading the tree: neither a folder nor a configuration has changed.
    pub(super) async fn mirror(&mut self, changes: &AgentChanges) -> io::Result<()> {
        let mut problems = self.problems.clone();
        self.check_root()?;
        self.append_mail(changes, &mut problems).await;
        self.mirror_conversations(changes, &mut problems).await;
        self.report(problems);
        self.state.save()
    }

    /// Returns the state of each folder, which the port [`AgentFolders`](parlor_engine::ports::AgentFolders) reports.
    pub(super) fn infos(&self) -> BTreeMap<AgentId, FolderInfo> {
        let info = |id: &AgentId| {
            let found = self.scan.agents.get(id).and_then(Option::as_ref);
            FolderInfo {
                path: id.as_str().into(),
                has_claude_md: found.is_some_and(|found| found.has_claude_md),
                has_tools: self.scan.has_tools(id),
                is_missing: self.missing.contains(id),
            }
        };
        let ids = self.hosted.keys().chain(&self.missing);
        ids.map(|id| (id.clone(), info(id))).collect()
    }
}

/// The directories of `workDirs` that exist below the root. Clients can change `workDirs`, so it opens no other directory of
/// the machine to an agent.
fn work_dirs(root: &Path, folder: &Path, doc: &AgentDoc, mut problem: impl FnMut(String)) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for stated in doc.text_list_setting("workDirs") {
        // Without the links in it, so that a link does not lead out of the root.
        match std::fs::canonicalize(folder.join(&stated)) {
            Ok(path) if path.starts_with(root) && path.is_dir() => found.push(path),
            Ok(_) => problem(format!("{stated:?} in workDirs is not a directory below the agents root")),
            Err(error) => problem(format!("{stated:?} in workDirs cannot be used: {error}")),
        }
    }
    found
}

/// The sessions whose file is newer, and those whose stored configuration is newer.
fn compare_sessions(
    found: &FoundAgent,
    stored: Option<&Stored>,
    known: &Known,
) -> (Vec<SessionConfig>, Vec<SessionId>) {
    let (mut changed, mut unwritten) = (Vec::new(), Vec::new());
    let stored: BTreeMap<&SessionId, SessionDoc> = stored
        .into_iter()
        .flat_map(|stored| &stored.sessions)
        .map(|(session, subscriptions)| (&session.id, SessionDoc::of_store(session, subscriptions)))
        .collect();
    for (id, session) in &found.sessions {
        let last = known.sessions.get(id).map(DocDigest::as_str);
        let side = match stored.get(id) {
            Some(stored) => newer(&session.doc.digest(), &stored.digest(), last),
            None => Newer::Disk,
        };
        match (side, stored.get(id)) {
            (Newer::Disk, _) => changed.push(session.doc.config(id)),
            (Newer::Store, _) => unwritten.push(id.clone()),
            // The times are those of the store.
            (Newer::Neither, Some(stored)) if times(stored) != times(&session.doc) => {
                unwritten.push(id.clone());
            }
            (Newer::Neither, _) => {}
        }
    }
    // A file that was removed is written again only after a change in the hub.
    for (id, doc) in &stored {
        let is_absent = !found.sessions.contains_key(*id) && !found.invalid_sessions.contains(*id);
        if is_absent && known.sessions.get(*id) != Some(&doc.digest()) {
            unwritten.push((*id).clone());
        }
    }
    (changed, unwritten)
}

fn times(doc: &SessionDoc) -> (Option<i64>, Option<i64>) {
    (doc.created_at.map(|time| time.millis()), doc.last_used_at.map(|time| time.millis()))
}

/// A refusal as a sentence for the log.
pub(super) fn sentence(refusal: &Refusal) -> String {
    match refusal {
        Refusal::BelongsToAnother(_) => {
            "an agent with this id exists, which belongs to another account or gateway".into()
        }
        Refusal::NotAMember { room } => format!("the agent is not a member of the room {room}"),
        refusal => parlor_wire::broker::codes::sentence(refusal, None),
    }
}

fn unreadable(refusal: Refusal) -> io::Error {
    io::Error::other(format!("the store cannot be read: {}", sentence(&refusal)))
}
