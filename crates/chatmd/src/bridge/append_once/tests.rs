//! The file after a kill at each step of an append.

use super::*;
use crate::bridge::continuations::Addressed;
use crate::bridge::state::PendingMessage;
use parlor_model::{Epoch, Position, Seq};
use std::fs;
use std::path::PathBuf;

const MESSAGES: [&str; 3] =
    ["[ada-to-coder]: one\n  and more\n", "[bob-to-all] @ [x]: zwö\n", "[ada-to-x]: three\n"];

struct TestFile {
    directory: tempfile::TempDir,
    workplace: Workplace,
}

impl TestFile {
    fn new(content: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(".workplace")).unwrap();
        let workplace = Workplace::open(directory.path()).unwrap();
        let place = Self { directory, workplace };
        fs::write(place.chat(), content).unwrap();
        place
    }

    fn chat(&self) -> PathBuf {
        self.directory.path().join(".workplace/chat.md")
    }

    fn content(&self) -> String {
        fs::read_to_string(self.chat()).unwrap()
    }

    fn add(&self, bytes: &[u8]) {
        let mut content = fs::read(self.chat()).unwrap();
        content.extend_from_slice(bytes);
        // In place: the file keeps its inode.
        fs::write(self.chat(), content).unwrap();
    }

    fn pending(&self) -> PendingAppend {
        let messages = MESSAGES.iter().map(|text| {
            let addressed = Addressed { id: "m".into(), seq: 1, sender: String::new(), names: Vec::new() };
            PendingMessage { bytes: text.len(), digest: String::new(), addressed }
        });
        PendingAppend {
            text: MESSAGES.concat(),
            messages: messages.collect(),
            position: Position { epoch: Epoch(1), seq: Seq(1) },
            before: length(&self.workplace).unwrap(),
        }
    }

    /// Checks that each message is in the file at its offset and nowhere else.
    #[track_caller]
    fn check(&self, appended: &AppendedOnce) {
        let content = self.content();
        assert_eq!(appended.offsets.len(), MESSAGES.len());
        for (text, &offset) in MESSAGES.iter().zip(&appended.offsets) {
            assert!(content[offset as usize..].starts_with(text), "{content:?}");
            let at_line_start = |at: &usize| *at == 0 || content.as_bytes()[at - 1] == b'\n';
            let found: Vec<usize> =
                content.match_indices(text).map(|(at, _)| at).filter(at_line_start).collect();
            assert_eq!(found, [offset as usize], "{content:?}");
        }
    }
}

#[test]
fn the_text_is_appended_once() {
    for before in ["", "# Chat\n\n", "[x-to-y]: without a line feed"] {
        let place = TestFile::new(before);
        let pending = place.pending();
        let first = append_once(&place.workplace, &pending).unwrap();
        place.check(&first);
        let content = place.content();
        assert_eq!(append_once(&place.workplace, &pending).unwrap(), first, "as after a restart");
        assert_eq!(place.content(), content);
    }
}

#[test]
fn the_same_text_before_the_append_is_not_mistaken_for_it() {
    let place = TestFile::new(&MESSAGES.concat());
    let appended = append_once(&place.workplace, &place.pending()).unwrap();
    assert_eq!(appended.offsets[0], MESSAGES.concat().len() as u64);
    assert_eq!(place.content(), MESSAGES.concat().repeat(2));
}

#[test]
fn text_behind_lines_of_other_programs_is_found() {
    let filler = "[x-to-y]: filler\n".repeat(SEARCH_BYTES / 10);
    let place = TestFile::new("");
    let pending = place.pending();
    place.add((filler.clone() + &MESSAGES.concat() + &filler).as_bytes());
    let content = place.content();
    let appended = append_once(&place.workplace, &pending).unwrap();
    assert_eq!(appended.offsets[0], filler.len() as u64);
    assert_eq!(place.content(), content);
}

#[test]
fn an_append_that_was_cut_anywhere_is_completed() {
    let text = MESSAGES.concat();
    for cut in 0..=text.len() {
        let place = TestFile::new("# Chat\n");
        let pending = place.pending();
        place.add(&text.as_bytes()[..cut]);
        let appended = append_once(&place.workplace, &pending).unwrap();
        place.check(&appended);
        assert_eq!(appended.fragment, None, "cut at {cut}");
        // A cut within the first names leaves a line that is no message, because it could be the start of a line
        // of another program.
        let header = "[ada-to-coder]: o".len();
        if cut == 0 || cut >= header {
            assert_eq!(place.content(), format!("# Chat\n{text}"), "cut at {cut}");
        }
    }
}

#[test]
fn a_cut_message_before_other_lines_is_written_again_and_its_rest_is_marked() {
    let text = MESSAGES.concat();
    let other = "\n[x-to-y]: other\n";
    for cut in 1..text.len() {
        let place = TestFile::new("");
        let pending = place.pending();
        place.add(&[&text.as_bytes()[..cut], other.as_bytes()].concat());
        let appended = append_once(&place.workplace, &pending).unwrap();
        let content = fs::read(place.chat()).unwrap();
        let end_of_first = MESSAGES[0].len();
        for (number, (text, &offset)) in MESSAGES.iter().zip(&appended.offsets).enumerate() {
            assert!(
                content[offset as usize..].starts_with(text.as_bytes()),
                "message {number}, cut at {cut}"
            );
        }
        if let Some((offset, fragment)) = &appended.fragment {
            assert!(String::from_utf8_lossy(&content[*offset as usize..]).starts_with(fragment.as_str()));
        }
        let marked = appended.fragment.is_some();
        if cut > "[ada-to-coder]: o".len() && cut < end_of_first {
            assert!(marked, "cut at {cut}");
        }
        if cut >= end_of_first {
            assert_eq!(appended.offsets[0], 0, "a complete message is not written again, cut at {cut}");
        }
    }
}

#[test]
fn a_replaced_or_truncated_file_gets_the_text() {
    let place = TestFile::new("[x-to-y]: a long first file\n");
    let pending = place.pending();
    fs::rename(place.chat(), place.directory.path().join("old.md")).unwrap();
    place.check(&append_once(&place.workplace, &pending).unwrap());

    let place = TestFile::new("[x-to-y]: a long first file\n");
    let pending = place.pending();
    fs::write(place.chat(), "short\n").unwrap();
    place.check(&append_once(&place.workplace, &pending).unwrap());
}
