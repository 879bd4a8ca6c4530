//! Finds out the version of an installed program by running it.

use crate::process::Program;
use std::ffi::OsString;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// Timeout for a program that only prints its version; a large one takes seconds to load from a cold disk.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum bytes of output that are read.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// Runs the program with these arguments and returns its stdout, whatever its exit code; `None` after a
/// timeout.
pub(super) async fn output_of(program: &Program, arguments: &[&str]) -> Option<String> {
    let program = Program { arguments: arguments.iter().map(OsString::from).collect(), ..program.clone() };
    let mut running = program.start().ok()?;
    running.stdin = None;
    let mut stdout = running.stdout.take()?.take(MAX_OUTPUT_BYTES);
    let mut output = Vec::new();
    let exited = async {
        stdout.read_to_end(&mut output).await.ok()?;
        running.wait().await.ok()
    };
    timeout(PROBE_TIMEOUT, exited).await.ok()??;
    Some(String::from_utf8_lossy(&output).trim().to_owned())
}

/// Parses the first version number in a text, such as 2.1.0 in `2.1.0 (Claude Code)`.
pub(super) fn version(text: &str) -> Option<Vec<u32>> {
    let words = text.split(|character: char| character.is_whitespace() || character == 'v');
    words.filter(|word| word.contains('.')).find_map(|word| {
        let numbers =
            word.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect::<Vec<u32>>();
        (numbers.len() >= 2).then_some(numbers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_program_output() {
        assert_eq!(version("2.1.325 (Claude Code)"), Some(vec![2, 1, 325]));
        assert_eq!(version("codex-cli v0.61.0-alpha.2"), Some(vec![0, 61, 0]));
        assert_eq!(version("not a version."), None);
        assert!(version("2.1.9") < version("2.1.10"));
    }

    #[tokio::test]
    async fn the_output_of_a_program_is_returned() {
        let named = |name: &str| Program { program: name.into(), ..Program::default() };
        assert_eq!(output_of(&named("echo"), &["1.2.3"]).await.as_deref(), Some("1.2.3"));
        assert_eq!(output_of(&named("false"), &[]).await.as_deref(), Some(""));
        assert_eq!(output_of(&named("no-such-program-anywhere"), &[]).await, None);
    }
}
