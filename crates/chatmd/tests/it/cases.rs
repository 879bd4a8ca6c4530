//! The recorded cases of the original watcher, and the expected outcome where Parlor improves on it.

use crate::scene::Project;
use parlor_chatmd::Start;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;

pub fn cases() -> Value {
    serde_json::from_str(include_str!("../fixtures/cases.json")).unwrap()
}

/// Returns a text of the fixture: either plain, or a repeated text.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        _ => value["text"].as_str().unwrap().repeat(value["count"].as_u64().unwrap() as usize),
    }
}

fn bytes(case: &Value) -> Vec<u8> {
    match case["hex"].as_str() {
        Some(hex) => {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        }
        None => {
            format!("{}{}\n", case["repeat"]["before"].as_str().unwrap(), text(&case["repeat"])).into_bytes()
        }
    }
}

fn expected(case: &Value) -> Vec<Value> {
    let mut messages = case["expected"].as_array().unwrap().clone();
    for message in &mut messages {
        message["message"] = text(&message["message"]).into();
    }
    messages
}

#[test]
fn every_recorded_case_has_its_expected_outcome() {
    let fixture = cases();
    let project = Project::with_chat(fixture["initial"].as_str().unwrap());
    let mut tester = project.follow(Start::End);
    let all = fixture["cases"].as_array().unwrap();
    assert_eq!(all.len(), 46);
    for case in all {
        let name = case["case"].as_str().unwrap();
        let bytes = bytes(case);
        match case["operation"].as_str().unwrap() {
            "append" => project.append(&bytes),
            "truncate" => fs::write(project.chat(), &bytes).unwrap(),
            "edit" => OpenOptions::new().write(true).open(project.chat()).unwrap().write_all(&bytes).unwrap(),
            "replace" => project.replace(&bytes),
            "recreate" => {
                fs::remove_file(project.chat()).unwrap();
                tester.settle();
                fs::write(project.chat(), &bytes).unwrap();
            }
            other => panic!("unknown operation {other}"),
        }
        let read = tester.settle().messages;
        let printed: Vec<Value> = read
            .iter()
            .map(|read| {
                let line = &read.line;
                let mut object = json!({
                    "sender": line.sender, "recipient": line.recipient, "broadcast": line.broadcast,
                    "message": line.message, "line_number": read.line_number,
                });
                if let Some(body) = &line.body {
                    object["body"] = body.clone().into();
                }
                object
            })
            .collect();
        assert!(printed == expected(case), "{name}: {printed:?}");
    }
}

#[test]
fn only_improved_cases_differ_from_the_original() {
    for case in cases()["cases"].as_array().unwrap() {
        let mut expected = case["expected"].as_array().unwrap().clone();
        for message in &mut expected {
            // The line numbers of the original drift.
            message.as_object_mut().unwrap().remove("line_number").unwrap();
        }
        let same = Value::from(expected) == case["original"];
        assert_eq!(same, case["improved"].is_null(), "{}", case["case"]);
    }
}
