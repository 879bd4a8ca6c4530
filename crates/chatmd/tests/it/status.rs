//! Tests of the entry `server` in process-status.json.

use crate::scene::Project;
use parlor_chatmd::status::StatusFile;
use parlor_model::Time;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const START: Time = Time(1_763_236_800_123_000);
const LATER: Time = Time(1_763_236_801_456_000);

fn status(project: &Project) -> Value {
    serde_json::from_str(&fs::read_to_string(project.path("process-status.json")).unwrap()).unwrap()
}

#[test]
fn the_entry_tells_whether_the_process_runs() {
    let project = Project::new();
    let (mut file, problem) = StatusFile::start(project.workplace(), START);
    assert_eq!(problem, None);
    let mut expected = json!({"server": {
        "status": "running", "pid": std::process::id(), "startedAt": "2025-11-15T20:00:00.123Z",
        "lastEvent": "2025-11-15T20:00:00.123Z", "error": null,
    }});
    assert_eq!(status(&project), expected);
    // An event is written at most once per second, and with the end at the latest.
    assert_eq!(file.wake_at(), None);
    assert_eq!(file.event(LATER), None);
    assert!(file.wake_at().is_some());
    assert_eq!(file.stop(None), None);
    expected["server"]["status"] = "stopped".into();
    expected["server"]["lastEvent"] = "2025-11-15T20:00:01.456Z".into();
    assert_eq!(status(&project), expected);

    let (file, _) = StatusFile::start(project.workplace(), LATER);
    file.stop(Some("the disk is full"));
    assert_eq!(status(&project)["server"]["status"], "error");
    assert_eq!(status(&project)["server"]["error"], "the disk is full");
}

#[test]
fn an_event_is_written_when_it_is_due() {
    let project = Project::new();
    let (mut file, _) = StatusFile::start(project.workplace(), START);
    file.event(LATER);
    let due = file.wake_at().unwrap();
    // Only waiting until the due time can show that the write happens then.
    while std::time::Instant::now() < due {
        std::thread::sleep(due.saturating_duration_since(std::time::Instant::now()));
    }
    assert_eq!(file.write_when_due(), None);
    assert_eq!(file.wake_at(), None);
    assert_eq!(status(&project)["server"]["lastEvent"], "2025-11-15T20:00:01.456Z");
}

#[test]
fn every_other_byte_of_the_file_stays() {
    let path = |project: &Project| project.path("process-status.json");
    for (before, after) in [
        ("{\"a\":1}", "{\"a\":1,\n  \"server\": SERVER\n}"),
        ("{}", "{\n  \"server\": SERVER\n}"),
        (" { } \n", " {\n  \"server\": SERVER\n} \n"),
        ("", "{\n  \"server\": SERVER\n}\n"),
        ("{\"server\":1}", "{\"server\":SERVER}"),
        (
            "{\n\t\"z\": {\"task\": \"a \\u00e9 } \\\" \", \"n\": 1.50e+3},\n\t\"server\" : {\"status\":\"stopped\"} ,\n \"a\":[ ]}\n",
            "{\n\t\"z\": {\"task\": \"a \\u00e9 } \\\" \", \"n\": 1.50e+3},\n\t\"server\" : SERVER ,\n \"a\":[ ]}\n",
        ),
        // A key in another object, or in a text, is another key.
        (
            "{\"x\":{\"server\":1},\"y\":\"\\\"server\\\":1\",\"server\":2}",
            "{\"x\":{\"server\":1},\"y\":\"\\\"server\\\":1\",\"server\":SERVER}",
        ),
        // An escaped key is the same key.
        ("{\"s\\u0065rver\":1}", "{\"s\\u0065rver\":SERVER}"),
    ] {
        let project = Project::new();
        if !before.is_empty() {
            fs::write(path(&project), before).unwrap();
            fs::set_permissions(path(&project), fs::Permissions::from_mode(0o640)).unwrap();
        }
        let (_, problem) = StatusFile::start(project.workplace(), START);
        assert_eq!(problem, None, "{before}");
        let written = fs::read_to_string(path(&project)).unwrap();
        let entry = status(&project)["server"].to_string();
        assert_eq!(written, after.replace("SERVER", &entry), "{before}");
        if !before.is_empty() {
            assert_eq!(fs::metadata(path(&project)).unwrap().permissions().mode() & 0o777, 0o640);
        }
    }
}

#[test]
fn a_file_that_is_no_json_object_is_left_alone_and_reported_once() {
    for content in [
        &b"{"[..],
        b"[]",
        b"null",
        b"{} x",
        b"{\"a\":}",
        b"\xff",
        "[".repeat(100_000).as_bytes(),
        format!("{{\"a\":{}", "[".repeat(100_000)).as_bytes(),
    ] {
        let project = Project::new();
        fs::write(project.path("process-status.json"), content).unwrap();
        let (file, problem) = StatusFile::start(project.workplace(), START);
        assert!(problem.unwrap().contains("process-status.json is not updated"));
        assert_eq!(file.stop(None), None);
        assert_eq!(fs::read(project.path("process-status.json")).unwrap(), content);
    }
}

#[test]
fn a_link_is_not_followed() {
    let project = Project::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "{}").unwrap();
    symlink(outside.path(), project.path("process-status.json")).unwrap();
    let (_, problem) = StatusFile::start(project.workplace(), START);
    assert!(problem.unwrap().contains("symbolic link"));
    assert_eq!(fs::read_to_string(outside.path()).unwrap(), "{}");
}

#[test]
fn programs_that_use_the_lock_do_not_lose_each_others_entries() {
    let project = Project::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let workplace = project.workplace();
            scope.spawn(move || {
                for _ in 0..10 {
                    let (file, problem) = StatusFile::start(workplace.clone(), START);
                    assert_eq!(problem, None);
                    assert_eq!(file.stop(None), None);
                }
            });
        }
    });
    assert_eq!(status(&project)["server"]["status"], "stopped");
    assert_eq!(status(&project).as_object().unwrap().len(), 1);
}
