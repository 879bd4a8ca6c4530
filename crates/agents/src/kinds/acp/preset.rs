//! Presets for well-known ACP programs: command lines, and remedies when a program does not work.

use crate::process::Program;
use std::ffi::OsStr;
use std::path::Path;

/// An agent of kind `acp:NAME`.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    /// Product name, for messages to users.
    title: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// npm package that `npx` downloads and runs if the program is not installed.
    package: Option<&'static str>,
    install: &'static str,
    sign_in: &'static str,
}

pub const PRESETS: &[Preset] = &[
    Preset {
        name: "claude",
        title: "Claude Code",
        program: "claude-agent-acp",
        arguments: &[],
        package: Some("@agentclientprotocol/claude-agent-acp"),
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        sign_in: "Sign in with `claude auth login`, or set ANTHROPIC_API_KEY.",
    },
    Preset {
        name: "codex",
        title: "Codex",
        program: "codex-acp",
        arguments: &[],
        package: Some("@agentclientprotocol/codex-acp"),
        install: "npm install -g @agentclientprotocol/codex-acp",
        sign_in: "Sign in with `codex login`, or set OPENAI_API_KEY.",
    },
    Preset {
        name: "gemini",
        title: "Gemini",
        program: "gemini",
        arguments: &["--acp"],
        package: None,
        install: "npm install -g @google/gemini-cli",
        sign_in: "Start `gemini` once and sign in, or set GEMINI_API_KEY.",
    },
    Preset {
        name: "opencode",
        title: "OpenCode",
        program: "opencode",
        arguments: &["acp"],
        package: None,
        install: "npm install -g opencode-ai",
        sign_in: "Sign in with `opencode auth login`.",
    },
];

/// Returns the command line of a preset: the installed program, or `npx` with its package.
pub fn preset(name: &str) -> Option<Program> {
    let preset = PRESETS.iter().find(|preset| preset.name == name)?;
    let installed = Program {
        program: preset.program.into(),
        arguments: preset.arguments.iter().map(Into::into).collect(),
        ..Program::default()
    };
    match preset.package {
        Some(package) if installed.locate().is_err() => Some(Program {
            program: "npx".into(),
            arguments: vec!["--yes".into(), package.into()],
            ..installed
        }),
        _ => Some(installed),
    }
}

pub(super) fn name_of(program: &Program) -> String {
    match of(program) {
        Some(preset) => preset.title.into(),
        None => file_name(&program.program),
    }
}

pub(super) fn how_to_install(program: &Program) -> String {
    match of(program) {
        Some(_) if program.program == "npx" => "Install Node.js, which brings npx: https://nodejs.org".into(),
        Some(preset) => format!("Install it: {}", preset.install),
        None => "Install it, or use its full path.".into(),
    }
}

pub(super) fn how_to_update(program: &Program) -> String {
    match of(program) {
        Some(preset) => format!("Install its newest version: {}@latest", preset.install),
        None => "Start it by hand and check its output; it must support the Agent Client Protocol.".into(),
    }
}

pub(super) fn how_to_sign_in(program: &Program) -> String {
    match of(program) {
        Some(preset) => preset.sign_in.into(),
        None => "Start it by hand and sign in.".into(),
    }
}

/// Finds the preset that a program belongs to, also if it was configured by its path.
fn of(program: &Program) -> Option<&'static Preset> {
    let file_name = file_name(&program.program);
    PRESETS.iter().find(|preset| {
        let runs_package = preset.package.is_some_and(|package| {
            program.arguments.iter().any(|argument| argument.to_string_lossy().starts_with(package))
        });
        file_name == preset.program || (file_name == "npx" && runs_package)
    })
}

fn file_name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_fill_in_the_command_line() {
        let line = |name: &str| {
            let program = preset(name)?;
            let arguments = program.arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
            Some([file_name(&program.program)].into_iter().chain(arguments).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(line("gemini").as_deref(), Some("gemini --acp"));
        assert_eq!(line("opencode").as_deref(), Some("opencode acp"));
        assert!(line("claude").unwrap().ends_with("claude-agent-acp"));
        assert!(line("codex").unwrap().ends_with("codex-acp"));
        assert_eq!(line("unknown"), None);
    }

    #[test]
    fn every_preset_has_a_name_and_remedies() {
        for Preset { name, title, .. } in PRESETS {
            let program = preset(name).unwrap();
            assert_eq!(name_of(&program), *title);
            assert!(how_to_update(&program).contains("npm install -g"));
            assert!(how_to_sign_in(&program).contains("ign in"));
        }
        let other = Program { program: "/opt/goose".into(), ..Program::default() };
        assert_eq!(name_of(&other), "goose");
    }
}
