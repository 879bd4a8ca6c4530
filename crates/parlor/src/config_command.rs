//! Implements `parlor config check` and `parlor config show`.

use crate::chatmd::configured;
use crate::settings::{self, Problem, Sources};
use std::fmt::Write;

/// Validates the settings and returns the text to print, warnings first. The error lists every problem.
pub fn check(sources: &Sources) -> anyhow::Result<String> {
    let loaded = settings::load(sources).map_err(|problems| combined_error(&problems))?;
    if let Some(file) = sources.config_file() {
        configured::read(&file)?;
    }
    let mut text = String::new();
    for warning in loaded.settings.warnings() {
        let _ = writeln!(text, "Warning: {warning}");
    }
    text.push_str("The settings are ok.\n");
    Ok(text)
}

/// Returns the effective settings as printed by `parlor config show`.
pub fn show(sources: &Sources) -> anyhow::Result<String> {
    let loaded = settings::load(sources).map_err(|problems| combined_error(&problems))?;
    Ok(settings::show(&loaded.effective))
}

/// Combines all problems into one error with one line per problem.
pub fn combined_error(problems: &[Problem]) -> anyhow::Error {
    let mut text = match problems.len() {
        1 => "There is a problem with the settings:".to_owned(),
        several => format!("There are {several} problems with the settings:"),
    };
    for problem in problems {
        let _ = write!(text, "\n  {problem}");
    }
    anyhow::Error::msg(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn valid_settings_are_ok_and_warnings_are_printed() {
        assert_eq!(check(&Sources::default()).unwrap(), "The settings are ok.\n");
        let text = check(&with("PARLOR_SYNCHRONOUS", "normal")).unwrap();
        assert!(text.starts_with("Warning: synchronous") && text.ends_with("ok.\n"), "{text}");
    }

    #[test]
    fn entries_for_chat_files_are_checked() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("parlor.toml");
        let checked = |text: &str| {
            std::fs::write(&config, text).unwrap();
            check(&Sources { config: Some(config.clone()), ..Sources::default() })
        };
        let entry = "[[chatmd]]\ndir = '/srv/a'\nroom = 'r1'\naccount = 'ada'\n";
        assert_eq!(checked(entry).unwrap(), "The settings are ok.\n");
        let error = checked(&entry.replace("account", "user")).unwrap_err().to_string();
        assert!(error.contains("user"), "{error}");
        assert!(checked("chatmd = 1\n").is_err());
    }

    #[test]
    fn each_problem_is_printed_on_its_own_line() {
        let mut sources = with("PARLOR_AUTH_TIMEOUT", "0");
        sources.environment.insert("PARLOR_LISTN".into(), "x".into());
        let text = check(&sources).unwrap_err().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "There are 2 problems with the settings:");
        assert_eq!(lines[1], "  PARLOR_LISTN: there is no such setting; did you mean PARLOR_LISTEN?");
        assert_eq!(lines[2], "  PARLOR_AUTH_TIMEOUT: must be between 1 and 300 seconds, not 0");
        assert_eq!(show(&sources).unwrap_err().to_string(), text);
    }

    fn with(name: &str, value: &str) -> Sources {
        Sources { environment: BTreeMap::from([(name.into(), value.into())]), ..Sources::default() }
    }
}
