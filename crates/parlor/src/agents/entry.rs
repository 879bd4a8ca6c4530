//! Definition of an agent by users: `NAME=KIND[:DIR]` on the command line, or `[[agent]]` in a file.

use anyhow::{Context, bail};
use parlor_agents::kinds::{AgentConfig, AgentKind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Maximum length of an agent's name; the hub has the same limit.
const MAX_NAME_CHARS: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentEntry {
    pub name: String,
    #[serde(flatten)]
    pub config: AgentConfig,
}

impl AgentEntry {
    /// Parses `NAME=KIND[:DIR]`. The kind may have a preset, as in `coder=acp:claude:/srv/project`.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let (name, rest) = text.split_once('=').with_context(|| {
            format!(
                "{text:?} is not an agent: write NAME=KIND or NAME=KIND:DIRECTORY, such as coder=claude:."
            )
        })?;
        let (kind, directory) = match rest.split_once(':') {
            // The part after `acp:` is a folder if it exists or looks like a path; otherwise it is a preset.
            Some(("acp", rest)) => match rest.split_once(':') {
                Some((preset, directory)) => (format!("acp:{preset}"), Some(directory)),
                None if is_folder(rest) => ("acp".into(), Some(rest)),
                None => (format!("acp:{rest}"), None),
            },
            Some((kind, directory)) => (kind.to_owned(), Some(directory)),
            None => (rest.to_owned(), None),
        };
        let directory = directory.map(|directory| absolute(Path::new(directory))).transpose()?;
        let entry =
            Self { name: name.into(), config: AgentConfig { kind, directory, ..AgentConfig::default() } };
        entry.check_name()?;
        Ok(entry)
    }

    pub fn check_name(&self) -> anyhow::Result<()> {
        let is_valid = !self.name.trim().is_empty()
            && self.name.chars().count() <= MAX_NAME_CHARS
            && !self.name.chars().any(char::is_control);
        if !is_valid {
            bail!("{:?} is not a valid agent name: use 1 to {MAX_NAME_CHARS} characters", self.name);
        }
        Ok(())
    }

    /// Validates the entry and returns its agent kind, without starting the agent.
    pub fn check(&self) -> anyhow::Result<AgentKind> {
        self.check_name()?;
        AgentKind::new(&self.config).map_err(|problem| anyhow::anyhow!("the agent {}: {problem}", self.name))
    }
}

/// Reads a TOML file. Errors never quote the file, because it may contain secrets.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.lines().count().max(1);
        anyhow::anyhow!("{} is invalid near line {line}: {}", path.display(), error.message())
    })
}

fn is_folder(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || Path::new(text).is_dir()
}

/// Makes a path absolute and expands `~`, so that an agent uses the same folder wherever its gateway is
/// started.
pub fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    let path = match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    };
    std::path::absolute(&path).with_context(|| format!("{} is not a folder", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, kind: &str, directory: Option<&str>) {
        let entry = AgentEntry::parse(text).unwrap();
        assert_eq!((entry.name.as_str(), entry.config.kind.as_str()), (name, kind));
        assert_eq!(entry.config.directory.as_deref(), directory.map(Path::new));
    }

    #[test]
    fn an_agent_is_parsed_from_name_kind_and_optional_folder() {
        check("coder=claude:/srv/project", "coder", "claude", Some("/srv/project"));
        check("coder=claude", "coder", "claude", None);
        check("Code Reviewer=acp:claude:/srv", "Code Reviewer", "acp:claude", Some("/srv"));
        check("x=acp:codex", "x", "acp:codex", None);
        check("x=acp:/srv", "x", "acp", Some("/srv"));
        for invalid in ["coder", "=claude", "a\nb=claude", ""] {
            assert!(AgentEntry::parse(invalid).is_err(), "{invalid:?}");
        }
    }

    #[test]
    fn an_agent_is_read_from_toml_and_unknown_keys_are_rejected() {
        let text =
            "name = 'echo'\nkind = 'command'\ncommand = ['cat']\nterminal = true\n[environment]\nA = '1'";
        let entry: AgentEntry = toml::from_str(text).unwrap();
        assert_eq!(entry.config.command, ["cat"]);
        assert!(entry.check().is_ok());
        let misspelt: AgentEntry =
            toml::from_str("name = 'e'\nkind = 'command'\ncommand = ['cat']\ntty = 1").unwrap();
        let error = misspelt.check().unwrap_err().to_string();
        assert!(error.contains("tty"), "{error}");
        assert!(!format!("{entry:?}").contains("\"1\""), "the environment may contain secrets");
    }
}
