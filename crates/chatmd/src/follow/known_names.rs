//! Names of agents that decide an ambiguous split of a header at `-to-`.

use crate::Workplace;
use crate::workplace::names;
use rustix::fs::fstat;
use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Directory of agent descriptions in a workplace: `NAME.md` describes the agent NAME.
const AGENTS: &str = "agents";

/// A directory that changed less than this before it was listed may change again with the same time stamp.
const CLOCK_GRANULARITY: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct KnownNames {
    given: HashSet<String>,
    /// Names of agents, sorted.
    agents: Vec<String>,
    /// Names given by the caller and names of agents.
    all: HashSet<String>,
    /// Modification time of the listed directory, unless it must be listed again.
    listed: Option<(i64, i64)>,
}

impl KnownNames {
    pub fn all(&self) -> &HashSet<String> {
        &self.all
    }

    /// Returns the names of agents at the last refresh.
    pub fn agents(&self) -> &[String] {
        &self.agents
    }

    pub fn set(&mut self, names: impl IntoIterator<Item = String>) {
        self.given = names.into_iter().collect();
        self.all = self.given.clone();
        self.listed = None;
    }

    /// Lists the agents again if their directory changed. An unreadable directory counts as empty.
    pub fn refresh(&mut self, workplace: &Workplace) {
        if self.try_refresh(workplace).is_err() {
            self.all.clone_from(&self.given);
            self.agents.clear();
            self.listed = None;
        }
    }

    fn try_refresh(&mut self, workplace: &Workplace) -> io::Result<()> {
        let Some(directory) = workplace.open_directory(AGENTS)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let stat = fstat(&directory)?;
        let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        if self.listed == Some(modified) {
            return Ok(());
        }
        let files = names(directory.as_fd())?;
        self.agents = files.iter().filter_map(|name| name.strip_suffix(".md")).map(str::to_owned).collect();
        self.agents.sort_unstable();
        self.all.clone_from(&self.given);
        self.all.extend(self.agents.iter().cloned());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let settled = now.as_secs() as i64 - modified.0 >= CLOCK_GRANULARITY.as_secs() as i64;
        self.listed = settled.then_some(modified);
        Ok(())
    }
}
