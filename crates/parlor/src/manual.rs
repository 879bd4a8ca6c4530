//! What a package brings along: completions for shells and manual pages, made from the command line itself.

use crate::arguments::command_line;
use anyhow::Context;
use clap_complete::Shell;
use std::path::Path;

pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "parlor", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The page of the program, or the pages of all its commands written into a directory.
pub fn manual(directory: Option<&Path>) -> anyhow::Result<String> {
    let command = command_line();
    match directory {
        Some(directory) => {
            let written = clap_mangen::generate_to(command, directory);
            written.with_context(|| format!("cannot write into {}", directory.display()))?;
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
    fn every_shell_learns_every_command() {
        for shell in Shell::value_variants() {
            let script = completions(*shell);
            for command in command_line().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }

    #[test]
    fn there_is_a_page_for_the_program_and_for_each_command() {
        let page = manual(None).unwrap();
        assert!(page.contains(".TH parlor 1") && page.contains("config example"), "{page}");
        let directory = tempfile::tempdir().unwrap();
        manual(Some(directory.path())).unwrap();
        for name in ["parlor.1", "parlor-serve.1", "parlor-admin-user-add.1"] {
            assert!(directory.path().join(name).exists(), "{name}");
        }
    }
}
