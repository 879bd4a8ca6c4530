//! State across restarts, and own lines.

use super::*;
use parlor_model::{Epoch, Seq};
use std::fs;

fn workplace() -> (tempfile::TempDir, Workplace) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join(".workplace")).unwrap();
    let workplace = Workplace::open(directory.path()).unwrap();
    (directory, workplace)
}

fn cursor(generation: &str, inode: u64, offset: u64) -> Cursor {
    Cursor { generation: generation.into(), inode, device: 1, offset, lines: 0, tail: String::new() }
}

fn line(message: &str) -> LineMessage {
    LineMessage {
        sender: "ada".into(),
        recipient: "coder".into(),
        broadcast: Vec::new(),
        message: message.into(),
        body: None,
    }
}

/// A state with own lines at these offsets of the file with inode 7.
fn with_own_lines(offsets: &[u64]) -> BridgeState {
    let mut state = BridgeState::new("room", "http://hub");
    state.advance(cursor("g1", 7, 0));
    let messages = offsets.iter().map(|offset| PendingMessage {
        bytes: 10,
        digest: line_digest(&line(&offset.to_string())),
        addressed: Addressed {
            id: "m".into(),
            seq: 5,
            sender: "id:u".into(),
            names: vec!["name:coder".into()],
        },
    });
    let position = Position { epoch: Epoch(1), seq: Seq(5) };
    let (text, messages) = (String::new(), messages.collect());
    state.pending = Some(PendingAppend { text, messages, position, before: None });
    state.appended(1, 7, offsets);
    state
}

#[test]
fn the_state_survives_a_restart() {
    let (_directory, workplace) = workplace();
    let mut state = with_own_lines(&[0, 10]);
    state.pending = Some(PendingAppend {
        text: String::new(),
        messages: Vec::new(),
        position: Position { epoch: Epoch(1), seq: Seq(6) },
        before: Some(FileLength { device: 1, inode: 7, bytes: 20 }),
    });
    let file = StateFile::lock(&workplace).unwrap();
    assert_eq!(file.read().unwrap(), None);
    file.save(&encode(&state)).unwrap();
    drop(file);
    assert_eq!(StateFile::lock(&workplace).unwrap().read().unwrap(), Some(state));
}

#[test]
fn two_bridges_cannot_serve_one_file() {
    let (_directory, workplace) = workplace();
    let _first = StateFile::lock(&workplace).unwrap();
    let error = StateFile::lock(&workplace).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert!(error.to_string().contains("another bridge serves this chat.md"), "{error}");
}

#[test]
fn a_damaged_or_foreign_state_is_an_error() {
    let (directory, workplace) = workplace();
    let file = StateFile::lock(&workplace).unwrap();
    let path = directory.path().join(".workplace").join(STATE);
    let newer = BridgeState { version: 99, ..BridgeState::new("room", "hub") };
    for content in [&b""[..], b"{", b"null", b"[]", b"\xff", &encode(&newer)] {
        fs::write(&path, content).unwrap();
        let error = file.read().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }
}

#[test]
fn an_own_line_is_recognised_by_its_place_and_its_text() {
    let state = with_own_lines(&[100]);
    let at =
        |inode, offset, text: &str| state.own_line(&cursor("g1", inode, 0), offset, &line(text)).is_some();
    assert!(at(7, 100, "100"));
    assert!(!at(7, 100, "another text, as after a truncation"));
    assert!(!at(7, 90, "100"));
    assert!(!at(8, 100, "100"));
}

#[test]
fn own_lines_are_forgotten_when_they_are_passed_or_their_file_is_finished() {
    let mut state = with_own_lines(&[0, 10, 20]);
    state.advance(cursor("g1", 7, 20));
    assert_eq!(state.own_lines.len(), 1);
    // The bridge wrote to the next file before the follower reached it.
    let ahead = OwnLine { inode: 8, ..state.own_lines[0].clone() };
    state.own_lines.push(ahead.clone());
    state.advance(cursor("g2", 8, 0));
    assert_eq!(state.own_lines, [ahead]);
    state.advance(cursor("g2", 8, 40));
    assert_eq!(state.own_lines, []);
}

#[test]
fn own_lines_are_bounded() {
    let offsets: Vec<u64> = (0..MAX_OWN_LINES as u64 + 5).collect();
    let state = with_own_lines(&offsets);
    assert_eq!(state.own_lines.len(), MAX_OWN_LINES);
    assert_eq!(state.own_lines[0].offset, 5);
}

#[test]
fn a_reset_keeps_the_ids_of_lines() {
    let state = BridgeState::new("room", "hub");
    let line = RelayedLine { place: "g1:0", author: "coder", recipient: None, text: "x" };
    let id = state.external_id(&line);
    let addressed = RelayedLine { recipient: Some(""), ..line };
    assert_ne!(state.external_id(&addressed), id);
    let reset = state.clone().reset("other", "hub");
    assert_eq!((&*reset.room, &reset.cursor, reset.position), ("other", &None, None));
    assert_eq!(reset.external_id(&line), id, "lines of an earlier bridge are not written back");
}

#[test]
fn a_state_with_wrong_lengths_is_refused() {
    let (_directory, workplace) = workplace();
    let file = StateFile::lock(&workplace).unwrap();
    let addressed = Addressed { id: "m".into(), seq: 5, sender: "id:u".into(), names: Vec::new() };
    let message = |bytes| PendingMessage { bytes, digest: String::new(), addressed: addressed.clone() };
    for lengths in [vec![5, usize::MAX], vec![5], vec![]] {
        let mut state = BridgeState::new("room", "hub");
        let position = Position { epoch: Epoch(1), seq: Seq(6) };
        let messages = lengths.into_iter().map(message).collect();
        state.pending =
            Some(PendingAppend { text: "[a-to-b]: x\n".into(), messages, position, before: None });
        file.save(&encode(&state)).unwrap();
        assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
