//! An agent as people write it down: `NAME=KIND[:DIR]` on the command line, `[[agent]]` in a file.

use anyhow::{Context, bail};
use parlor_agents::kinds::{AgentConfig, AgentKind};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// As long as the hub lets a name be.
const LONGEST_NAME: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentEntry {
    pub name: String,
    #[serde(flatten)]
    pub recipe: AgentConfig,
}

impl AgentEntry {
    /// From `NAME=KIND[:DIR]`; a kind may have a preset, as in `coder=acp:claude:/srv/project`.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let (name, rest) = text.split_once('=').with_context(|| {
            format!("{text:?} is no agent: write NAME=KIND or NAME=KIND:DIRECTORY, such as coder=claude:.")
        })?;
        let (kind, directory) = match rest.split_once(':') {
            // What follows a kind is a folder if there is one, or if it looks like one.
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
            Self { name: name.into(), recipe: AgentConfig { kind, directory, ..AgentConfig::default() } };
        entry.has_a_name()?;
        Ok(entry)
    }

    pub fn has_a_name(&self) -> anyhow::Result<()> {
        let good = !self.name.trim().is_empty()
            && self.name.chars().count() <= LONGEST_NAME
            && !self.name.chars().any(char::is_control);
        if !good {
            bail!("{:?} is no name for an agent: 1 to {LONGEST_NAME} letters", self.name);
        }
        Ok(())
    }

    /// Whether an agent can be made of it, without starting one.
    pub fn check(&self) -> anyhow::Result<AgentKind> {
        self.has_a_name()?;
        AgentKind::new(&self.recipe).map_err(|problem| anyhow::anyhow!("the agent {}: {problem}", self.name))
    }
}

/// A file of settings. What is wrong with it is told without its text, which may hold a secret.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.lines().count().max(1);
        anyhow::anyhow!("{} is not understood near line {line}: {}", path.display(), error.message())
    })
}

fn is_folder(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || Path::new(text).is_dir()
}

/// An agent works in the same folder wherever its gateway is started next.
pub fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    let path = match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    };
    std::path::absolute(&path).with_context(|| format!("{} is no folder", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, kind: &str, directory: Option<&str>) {
        let entry = AgentEntry::parse(text).unwrap();
        assert_eq!((entry.name.as_str(), entry.recipe.kind.as_str()), (name, kind));
        assert_eq!(entry.recipe.directory.as_deref(), directory.map(Path::new));
    }

    #[test]
    fn an_agent_is_a_name_a_kind_and_perhaps_a_folder() {
        check("coder=claude:/srv/project", "coder", "claude", Some("/srv/project"));
        check("coder=claude", "coder", "claude", None);
        check("Code Reviewer=acp:claude:/srv", "Code Reviewer", "acp:claude", Some("/srv"));
        check("x=acp:codex", "x", "acp:codex", None);
        check("x=acp:/srv", "x", "acp", Some("/srv"));
        for wrong in ["coder", "=claude", "a\nb=claude", ""] {
            assert!(AgentEntry::parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_file_says_the_same_and_more() {
        let text =
            "name = 'echo'\nkind = 'command'\ncommand = ['cat']\nterminal = true\n[environment]\nA = '1'";
        let entry: AgentEntry = toml::from_str(text).unwrap();
        assert_eq!(entry.recipe.command, ["cat"]);
        assert!(entry.check().is_ok());
        let misspelt: AgentEntry =
            toml::from_str("name = 'e'\nkind = 'command'\ncommand = ['cat']\ntty = 1").unwrap();
        let error = misspelt.check().unwrap_err().to_string();
        assert!(error.contains("tty"), "{error}");
        assert!(!format!("{entry:?}").contains("\"1\""), "what is in the environment may be secret");
    }
}
