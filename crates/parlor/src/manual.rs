//! Generates shell completions and manual pages from the command-line definition, for packages.

use crate::arguments::command_line;
use anyhow::Context;
use clap_complete::Shell;
use std::path::Path;

pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "parlor", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the manual page of `parlor`, or writes the pages of all commands to `directory` and returns no
/// text.
pub fn manual(directory: Option<&Path>) -> anyhow::Result<String> {
    let command = command_line();
    match directory {
        Some(directory) => {
            let written = clap_mangen::generate_to(command, directory);
            written.with_context(|| format!("cannot write to {}", directory.display()))?;
            Ok(String::new())
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            Ok(String::from_utf8_lossy(&page).into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_completions_of_every_shell_contain_every_command() {
        for shell in Shell::value_variants() {
            let script = completions(*shell);
            for command in command_line().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }

    #[test]
    fn manual_pages_exist_for_the_program_and_for_each_command() {
        let page = manual(None).unwrap();
        assert!(page.contains(".TH parlor 1") && page.contains("config example"), "{page}");
        let directory = tempfile::tempdir().unwrap();
        manual(Some(directory.path())).unwrap();
        for name in ["parlor.1", "parlor-serve.1", "parlor-admin-user-add.1"] {
            assert!(directory.path().join(name).exists(), "{name}");
        }
    }
}
