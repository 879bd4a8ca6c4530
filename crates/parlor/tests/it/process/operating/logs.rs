//! Logs that other programs read and rotate, and what a package brings along.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::command_line::{ok, refused};
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_file_that_was_moved_away_is_opened_anew_on_sighup() {
    let directory = tempfile::tempdir().unwrap();
    let (file, moved) = (directory.path().join("parlor.log"), directory.path().join("parlor.log.1"));
    let mut scene = Scene::process_set(&[
        ("PARLOR_LOG_FILE", file.to_str().unwrap()),
        ("PARLOR_LOG_FORMAT", "json"),
        ("PARLOR_LOG_LEVEL", "debug"),
    ])
    .await;
    std::fs::rename(&file, &moved).unwrap();
    scene.admin.get("/api/rooms").await.unwrap();
    scene.hub.hang_up().unwrap();
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(10), "not opened anew");
        scene.admin.get("/api/health").await.unwrap();
    }
    scene.admin.get("/api/users/me").await.unwrap();
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    assert_eq!(scene.hub.log(), "");
    let (old, new) = (lines(&moved), lines(&file));
    let tells_of = |log: &[Value], path: &str| log.iter().any(|line| line["fields"]["path"] == path);
    assert!(tells_of(&old, "/api/rooms") && !tells_of(&new, "/api/rooms"), "{old:?} {new:?}");
    assert!(tells_of(&new, "/api/users/me"), "{new:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// Each line is one JSON object.
fn lines(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_log_file_that_cannot_be_written_is_told_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("missing/parlor.log");
    let arguments = ["--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()];
    let said = refused(&arguments, &[("PARLOR_LOG_FILE", file.to_str().unwrap())]);
    assert!(said.contains("cannot write the log") && said.contains("missing/parlor.log"), "{said}");
}

#[test]
fn completions_and_the_manual_are_printed() {
    assert!(ok(&["completions", "bash"]).contains("_parlor"));
    assert!(ok(&["man"]).starts_with(".ie"));
}
