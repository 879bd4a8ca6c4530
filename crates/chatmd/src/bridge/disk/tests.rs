//! The state and the file after a kill at each step, and writes that fail.

use super::*;
use crate::bridge::continuations::Addressed;
use crate::bridge::state::PendingMessage;
use parlor_model::{Epoch, Position, Seq};
use std::fs;

const LINES: &str = "[ada-to-coder]: hello\n  and more\n";
const OTHER: &str = "[coder-to-ada]: meanwhile\n";

fn at(seq: u64) -> Position {
    Position { epoch: Epoch(1), seq: Seq(seq) }
}

/// A workplace and a state with one message that is being appended.
fn interrupted() -> (tempfile::TempDir, Workplace, BridgeState) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join(".workplace")).unwrap();
    let workplace = Workplace::open(directory.path()).unwrap();
    fs::write(directory.path().join(".workplace/chat.md"), OTHER).unwrap();
    let mut state = BridgeState::new("room", "hub");
    state.position = Some(at(4));
    let line = grammar::parse("[ada-to-coder]: hello", &HashSet::<String>::new()).unwrap();
    let addressed =
        Addressed { id: "m5".into(), seq: 5, sender: "id:u".into(), names: vec!["name:coder".into()] };
    state.pending = Some(PendingAppend {
        text: LINES.into(),
        messages: vec![PendingMessage { bytes: LINES.len(), digest: line_digest(&line), addressed }],
        position: at(5),
        before: length(&workplace).unwrap(),
    });
    (directory, workplace, state)
}

/// Recovers after a kill that left `written` in the file, and checks the file and the state.
#[track_caller]
fn check(written: &str, content: &str) {
    let (directory, workplace, mut state) = interrupted();
    let path = directory.path().join(".workplace/chat.md");
    fs::write(&path, format!("{OTHER}{written}")).unwrap();
    for _ in 0..2 {
        // A second kill, before the recovered state is saved, changes nothing.
        let mut again = state.clone();
        recover(&workplace, &mut again).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{OTHER}{content}"));
    }
    recover(&workplace, &mut state).unwrap();
    assert_eq!((state.position, &state.pending), (Some(at(5)), &None));
    assert_eq!(state.continuations.of("name:coder"), Some("m5"));
    let offset = (OTHER.len() + content.rfind(LINES).unwrap()) as u64;
    assert!(
        state.own_lines.iter().any(|line| line.offset == offset && line.end == offset + LINES.len() as u64)
    );
}

#[test]
fn a_kill_before_within_or_after_the_append_leaves_one_message() {
    check("", LINES);
    check(&LINES[..18], LINES);
    check(&LINES[..LINES.len() - 3], LINES);
    check(LINES, LINES);
    check(&format!("{LINES}{OTHER}"), &format!("{LINES}{OTHER}"));
    check(&format!("{OTHER}{LINES}{OTHER}"), &format!("{OTHER}{LINES}{OTHER}"));
}

#[test]
fn the_rest_of_a_killed_append_is_not_taken_for_a_line_of_another_program() {
    let (directory, workplace, mut state) = interrupted();
    let path = directory.path().join(".workplace/chat.md");
    fs::write(&path, format!("{OTHER}[ada-to-coder]: hel\n{OTHER}")).unwrap();
    recover(&workplace, &mut state).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{OTHER}[ada-to-coder]: hel\n{OTHER}{LINES}"));
    let fragment = grammar::parse("[ada-to-coder]: hel", &HashSet::<String>::new()).unwrap();
    let own = &state.own_lines[0];
    assert_eq!((own.offset, &*own.digest), (OTHER.len() as u64, &*line_digest(&fragment)));
}

#[tokio::test]
async fn a_failed_write_is_retried_and_reported_once() {
    let (directory, workplace, mut state) = interrupted();
    let path = directory.path().join(".workplace/chat.md");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let mut disk = Disk::new(workplace.clone(), StateFile::lock(&workplace).unwrap());
    disk.start(&mut state);
    assert!(disk.is_appending());
    let DiskEvent::Failed { why } = disk.next(&mut state).await else { panic!("a directory was written") };
    assert!(why.contains("directory"), "{why}");
    assert!(!disk.is_free(), "the next attempt waits");
    assert!(matches!(disk.next(&mut state).await, DiskEvent::Due));
    disk.start(&mut state);
    assert!(matches!(disk.next(&mut state).await, DiskEvent::FailedAgain));
    fs::remove_dir(&path).unwrap();
    assert!(matches!(disk.next(&mut state).await, DiskEvent::Due));
    disk.start(&mut state);
    assert!(matches!(disk.next(&mut state).await, DiskEvent::Saved { .. }));
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), &state.pending), (LINES, &None));
}
