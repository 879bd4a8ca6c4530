//! The recorded cases of the original watcher, with `parlor watch`.

use super::Project;
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write;

/// The cases with the bytes written, and the expected objects with the reason where they are better than the
/// recorded ones.
const CASES: &str = include_str!("../../../../../chatmd/tests/fixtures/cases.json");

/// Returns a text of the fixture: either plain, or a repeated text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => value["text"].as_str().unwrap().repeat(value["count"].as_u64().unwrap() as usize),
    }
}

fn bytes(case: &Value) -> Vec<u8> {
    let Some(hex) = case["hex"].as_str() else {
        return format!("{}{}\n", case["repeat"]["before"].as_str().unwrap(), text(&case["repeat"]))
            .into_bytes();
    };
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn every_recorded_case_has_its_expected_outcome() {
    let fixture: Value = serde_json::from_str(CASES).unwrap();
    let project = Project::with_chat(fixture["initial"].as_str().unwrap());
    let watch = project.watch(&[]);
    let cases = fixture["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 46);
    for case in cases {
        let bytes = bytes(case);
        match case["operation"].as_str().unwrap() {
            "append" => project.append(&bytes),
            "truncate" => fs::write(project.chat(), &bytes).unwrap(),
            "edit" => OpenOptions::new().write(true).open(project.chat()).unwrap().write_all(&bytes).unwrap(),
            "replace" => {
                fs::write(project.path("new"), &bytes).unwrap();
                fs::rename(project.path("new"), project.chat()).unwrap();
            }
            "recreate" => {
                fs::remove_file(project.chat()).unwrap();
                fs::write(project.chat(), &bytes).unwrap();
            }
            other => panic!("unknown operation {other}"),
        }
        // Output of a case that should print nothing would be found in place of the next expected object.
        for expected in case["expected"].as_array().unwrap() {
            let mut expected = expected.clone();
            expected["message"] = text(&expected["message"]).into();
            let mut printed = watch.next();
            let timestamp = printed.as_object_mut().unwrap().remove("timestamp").unwrap();
            let timestamp = timestamp.as_str().unwrap().to_owned();
            assert!(timestamp.len() == 24 && timestamp.ends_with('Z'), "{timestamp}");
            assert!(printed == expected, "{}: {printed:.200}", case["case"]);
        }
    }
    project.append("[a-to-b]: the end\n");
    assert_eq!(watch.next_text(), "the end");
    assert_eq!(watch.stop(), [""; 0]);
}
