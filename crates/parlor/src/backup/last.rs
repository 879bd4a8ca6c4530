//! Time and file of the last backup, stored in the data directory for `parlor doctor` and the metrics.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const NAME: &str = "last-backup.json";

#[derive(Debug, Serialize, Deserialize)]
pub struct LastBackup {
    pub file: PathBuf,
    /// Unix time of the backup, in seconds.
    pub at: u64,
}

impl LastBackup {
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(data.join(NAME)).ok()?).ok()
    }

    pub fn note(&self, data: &Path) -> anyhow::Result<()> {
        let new = data.join(format!("{NAME}.new"));
        std::fs::write(&new, serde_json::to_vec(self)?)
            .and_then(|()| std::fs::rename(&new, data.join(NAME)))
            .with_context(|| format!("cannot record the backup in {}", data.display()))
    }
}
