//! Model of a disk with a volatile cache: visible and durable state of files and names.
//!
//! Owns: the visible effect of each operation, and when it becomes durable. Never: handles FUSE requests (see
//! `kernel.rs`). The rules are those of a strict journaling file system: fsync of a file makes its content,
//! its names and its parent directories durable; fsync of a directory makes its names durable, including
//! removals; no other operation makes anything durable.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use fuser::Errno;

use super::content::Content;
use super::faults::Faults;

pub(super) type Ino = u64;
pub(super) type Result<T> = std::result::Result<T, Errno>;
type Names = BTreeMap<OsString, Ino>;

pub(super) const ROOT: Ino = 1;

pub(super) struct Disk {
    pub(super) faults: Faults,
    nodes: HashMap<Ino, Node>,
    next: Ino,
    boot: u64,
}

pub(super) struct Node {
    pub(super) body: Body,
    pub(super) mode: u16,
    pub(super) modified: SystemTime,
    open: u32,
}

pub(super) enum Body {
    File(Content),
    Directory {
        visible: Names,
        durable: Names,
    },
    Link(OsString),
    /// A Unix socket: only its name is on the disk; its state is in the kernel.
    Socket,
}

impl Body {
    pub(super) fn directory() -> Self {
        Self::Directory { visible: Names::new(), durable: Names::new() }
    }

    pub(super) fn file() -> Self {
        Self::File(Content::default())
    }
}

impl Disk {
    pub(super) fn new() -> Self {
        let root = Node::new(Body::directory(), 0o755);
        Self { faults: Faults::default(), nodes: HashMap::from([(ROOT, root)]), next: ROOT + 1, boot: 0 }
    }

    /// Number of power losses. A file handle carries this number, so that files opened before a power loss
    /// are rejected.
    pub(super) fn boot(&self) -> u64 {
        self.boot
    }

    pub(super) fn node(&self, ino: Ino) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(Errno::ESTALE)
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(Errno::ESTALE)
    }

    pub(super) fn links(&self, ino: Ino) -> u32 {
        let named =
            self.directories().flat_map(|(_, visible)| visible.values()).filter(|to| **to == ino).count();
        named as u32 + u32::from(ino == ROOT)
    }

    pub(super) fn used(&self) -> u64 {
        let kept = |ino, node: &Node| node.open > 0 || self.links(ino) > 0;
        self.nodes.iter().filter(|(ino, node)| kept(**ino, node)).map(|(_, node)| node.len()).sum()
    }

    pub(super) fn lookup(&self, parent: Ino, name: &OsStr) -> Result<Ino> {
        self.names(parent)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    pub(super) fn names(&self, directory: Ino) -> Result<&Names> {
        match &self.node(directory)?.body {
            Body::Directory { visible, .. } => Ok(visible),
            _ => Err(Errno::ENOTDIR),
        }
    }

    pub(super) fn create(&mut self, parent: Ino, name: &OsStr, body: Body, mode: u32) -> Result<Ino> {
        let ino = self.link(self.next, parent, name)?;
        self.nodes.insert(ino, Node::new(body, mode as u16 & 0o7777));
        self.next += 1;
        Ok(ino)
    }

    pub(super) fn link(&mut self, ino: Ino, parent: Ino, name: &OsStr) -> Result<Ino> {
        if self.names(parent)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.names_mut(parent)?.insert(name.to_owned(), ino);
        Ok(ino)
    }

    pub(super) fn remove(&mut self, parent: Ino, name: &OsStr) -> Result<()> {
        if matches!(self.names(self.lookup(parent, name)?), Ok(names) if !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        self.names_mut(parent)?.remove(name);
        self.collect();
        Ok(())
    }

    pub(super) fn rename(&mut self, parent: Ino, name: &OsStr, to: Ino, new: &OsStr) -> Result<()> {
        let ino = self.lookup(parent, name)?;
        if matches!(self.lookup(to, new).and_then(|over| self.names(over)), Ok(names) if !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        self.names_mut(to)?.insert(new.to_owned(), ino);
        if (parent, name) != (to, new) {
            self.names_mut(parent)?.remove(name);
        }
        self.collect();
        Ok(())
    }

    pub(super) fn open(&mut self, ino: Ino) -> Result<()> {
        self.node_mut(ino)?.open += 1;
        Ok(())
    }

    pub(super) fn close(&mut self, ino: Ino) -> Result<()> {
        let node = self.node_mut(ino)?;
        node.open = node.open.saturating_sub(1);
        self.collect();
        Ok(())
    }

    pub(super) fn content(&mut self, ino: Ino) -> Result<&mut Content> {
        match &mut self.node_mut(ino)?.body {
            Body::File(content) => Ok(content),
            Body::Directory { .. } => Err(Errno::EISDIR),
            Body::Link(_) | Body::Socket => Err(Errno::EINVAL),
        }
    }

    pub(super) fn write(&mut self, ino: Ino, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset.checked_add(data.len() as u64).ok_or(Errno::EFBIG)?;
        let grown = end.saturating_sub(self.content(ino)?.len());
        let used = self.used() + grown;
        self.faults.admit_write(used, grown)?;
        self.write_back(ino, offset, data)
    }

    /// Writes data that the kernel writes back from a memory mapping. No program waits for it, so it is
    /// exempt from faults and not counted.
    pub(super) fn write_back(&mut self, ino: Ino, offset: u64, data: &[u8]) -> Result<()> {
        self.content(ino)?.write(offset, data);
        self.node_mut(ino)?.modified = SystemTime::now();
        Ok(())
    }

    pub(super) fn truncate(&mut self, ino: Ino, len: u64) -> Result<()> {
        let grown = len.saturating_sub(self.content(ino)?.len());
        self.faults.admit_growth(self.used() + grown, grown)?;
        self.content(ino)?.resize(len);
        self.node_mut(ino)?.modified = SystemTime::now();
        Ok(())
    }

    pub(super) fn sync_file(&mut self, ino: Ino) -> Result<()> {
        let admitted = self.faults.admit_fsync();
        let content = self.content(ino)?;
        if let Err(errno) = admitted {
            content.forget_dirty();
            return Err(errno);
        }
        content.sync();
        self.make_names_durable(ino);
        Ok(())
    }

    pub(super) fn sync_directory(&mut self, ino: Ino) -> Result<()> {
        self.faults.admit_fsync()?;
        match &mut self.node_mut(ino)?.body {
            Body::Directory { visible, durable } => *durable = visible.clone(),
            _ => return Err(Errno::ENOTDIR),
        }
        self.make_names_durable(ino);
        self.collect();
        Ok(())
    }

    /// Simulates a power loss: only durable state remains. All inodes get new numbers, so that the kernel
    /// cannot confuse them with cached state of the old ones.
    pub(super) fn lose_power(&mut self) {
        let mut before = std::mem::take(&mut self.nodes);
        self.boot += 1;
        let mut renumbered = HashMap::from([(ROOT, ROOT)]);
        let mut waiting = vec![ROOT];
        while let Some(old) = waiting.pop() {
            let Some(node) = before.remove(&old) else { continue };
            let body = match node.body {
                Body::File(content) => Body::File(Content::restored(content.durable().to_vec())),
                Body::Link(target) => Body::Link(target),
                Body::Socket => Body::Socket,
                Body::Directory { durable, .. } => {
                    let names: Names = durable
                        .into_iter()
                        .map(|(name, child)| {
                            waiting.push(child);
                            let next = &mut self.next;
                            let fresh = renumbered.entry(child).or_insert_with(|| {
                                *next += 1;
                                *next - 1
                            });
                            (name, *fresh)
                        })
                        .collect();
                    Body::Directory { visible: names.clone(), durable: names }
                }
            };
            self.nodes.insert(renumbered[&old], Node { body, open: 0, ..node });
        }
    }

    /// Simulates a power loss during writes: `reached` decides for each unsynced page whether it became
    /// durable.
    pub(super) fn lose_power_at_work(&mut self, mut reached: impl FnMut() -> bool) {
        let mut inos: Vec<Ino> = self.nodes.keys().copied().collect();
        inos.sort_unstable(); // A fixed order, so that the same seed selects the same pages.
        for ino in inos {
            if let Ok(content) = self.content(ino) {
                content.tear(&mut reached);
            }
        }
        self.lose_power();
    }

    fn directories(&self) -> impl Iterator<Item = (Ino, &Names)> {
        self.nodes.iter().filter_map(|(ino, node)| match &node.body {
            Body::Directory { visible, .. } => Some((*ino, visible)),
            _ => None,
        })
    }

    fn names_mut(&mut self, directory: Ino) -> Result<&mut Names> {
        match &mut self.node_mut(directory)?.body {
            Body::Directory { visible, .. } => Ok(visible),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Makes the names of one node and of its parent directories durable.
    fn make_names_durable(&mut self, ino: Ino) {
        let mut above = Vec::new();
        for (directory, node) in &mut self.nodes {
            if let Body::Directory { visible, durable } = &mut node.body {
                durable.retain(|name, to| *to != ino || visible.get(name) == Some(&ino));
                for (name, _) in visible.iter().filter(|(_, to)| **to == ino) {
                    durable.insert(name.clone(), ino);
                    above.push(*directory);
                }
            }
        }
        for directory in above.into_iter().filter(|directory| *directory != ROOT) {
            self.make_names_durable(directory);
        }
    }

    /// Drops nodes without a visible name, a durable name or an open file.
    fn collect(&mut self) {
        let mut reached = HashSet::new();
        let open = self.nodes.iter().filter(|(_, node)| node.open > 0).map(|(ino, _)| *ino);
        let mut waiting: Vec<Ino> = open.chain([ROOT]).collect();
        while let Some(ino) = waiting.pop() {
            if reached.insert(ino)
                && let Some(Node { body: Body::Directory { visible, durable }, .. }) = self.nodes.get(&ino)
            {
                waiting.extend(visible.values().chain(durable.values()));
            }
        }
        self.nodes.retain(|ino, _| reached.contains(ino));
    }
}

impl Node {
    fn new(body: Body, mode: u16) -> Self {
        Self { body, mode, modified: SystemTime::now(), open: 0 }
    }

    pub(super) fn len(&self) -> u64 {
        match &self.body {
            Body::File(content) => content.len(),
            Body::Directory { .. } | Body::Socket => 0,
            Body::Link(target) => target.len() as u64,
        }
    }
}
