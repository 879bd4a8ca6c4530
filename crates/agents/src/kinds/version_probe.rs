//! What a program says of itself.

use crate::process::Program;
use std::ffi::OsString;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// For a program that only says its version; the first start of a large one from a cold disk takes seconds.
const PATIENCE: Duration = Duration::from_secs(20);
const LONGEST_ANSWER: u64 = 64 * 1024;

/// What it prints when it is called with these arguments, if it ends in time; well or not.
pub(super) async fn output_of(program: &Program, arguments: &[&str]) -> Option<String> {
    let program = Program { arguments: arguments.iter().map(OsString::from).collect(), ..program.clone() };
    let mut running = program.start().ok()?;
    running.stdin = None;
    let mut stdout = running.stdout.take()?.take(LONGEST_ANSWER);
    let mut said = Vec::new();
    let answer = async {
        stdout.read_to_end(&mut said).await.ok()?;
        running.wait().await.ok()
    };
    timeout(PATIENCE, answer).await.ok()??;
    Some(String::from_utf8_lossy(&said).trim().to_owned())
}

/// The numbers of the first version that a text names, such as 2.1.0 in `2.1.0 (Claude Code)`.
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
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version("2.1.325 (Claude Code)"), Some(vec![2, 1, 325]));
        assert_eq!(version("codex-cli v0.61.0-alpha.2"), Some(vec![0, 61, 0]));
        assert_eq!(version("not a version."), None);
        assert!(version("2.1.9") < version("2.1.10"));
    }

    #[tokio::test]
    async fn programs_are_asked_what_they_are() {
        let named = |name: &str| Program { program: name.into(), ..Program::default() };
        assert_eq!(output_of(&named("echo"), &["1.2.3"]).await.as_deref(), Some("1.2.3"));
        assert_eq!(output_of(&named("false"), &[]).await.as_deref(), Some(""));
        assert_eq!(output_of(&named("no-such-program-anywhere"), &[]).await, None);
    }
}
