//! The `[[chatmd]]` entries of the hub's settings file: files that the hub itself connects with rooms.

use crate::agents::entry;
use anyhow::{Context, ensure};
use parlor_model::RoomId;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A `chat.md` that the hub connects with a room.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredChat {
    /// Project directory that contains `.workplace`.
    pub dir: PathBuf,
    /// Id of the room.
    pub room: String,
    /// User name of the account that posts the lines.
    pub account: String,
}

/// The `[[chatmd]]` list of a settings file; other keys are ignored.
#[derive(Debug, Deserialize)]
struct Configured {
    #[serde(default)]
    chatmd: Vec<ConfiguredChat>,
}

/// Reads the entries and checks them. The directories, rooms and accounts need not exist yet.
pub fn read(config: &Path) -> anyhow::Result<Vec<ConfiguredChat>> {
    let mut entries = entry::read::<Configured>(config)?.chatmd;
    let mut directories = HashSet::new();
    for entry in &mut entries {
        entry.dir = entry::absolute(&entry.dir)?;
        let invalid = || format!("[[chatmd]] for {}", entry.dir.display());
        RoomId::parse(&entry.room).ok().context("room must be the id of a room").with_context(invalid)?;
        ensure!(!entry.account.trim().is_empty(), "{}: account must be a user name", invalid());
        ensure!(directories.insert(entry.dir.clone()), "{}: the directory has two entries", invalid());
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> anyhow::Result<Vec<ConfiguredChat>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("parlor.toml");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn entries_are_read_beside_other_settings() {
        let text = "listen = '127.0.0.1:1'\n[[agent]]\nname = 'x'\n[[chatmd]]\ndir = '/srv/a'\nroom = 'r1'\naccount = 'ada'\n";
        let entry = ConfiguredChat { dir: "/srv/a".into(), room: "r1".into(), account: "ada".into() };
        assert_eq!(read_text(text).unwrap(), [entry]);
        assert_eq!(read_text("").unwrap(), []);
    }

    #[test]
    fn an_invalid_entry_is_refused() {
        let valid = "[[chatmd]]\ndir = '/srv/a'\nroom = 'r1'\naccount = 'ada'\n";
        for (text, reason) in [
            (valid.replace("room", "rom"), "unknown field `rom`"),
            (valid.replace("account = 'ada'", ""), "missing field `account`"),
            (valid.replace("'r1'", "'../r'"), "room must be the id of a room"),
            (valid.replace("'ada'", "' '"), "account must be a user name"),
            (valid.repeat(2), "the directory has two entries"),
        ] {
            let error = format!("{:#}", read_text(&text).unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }
}
