//! Tests of log files and their rotation, shell completions and the manual page.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::command_line::{ok, refused};
use crate::scene::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reopens_a_rotated_log_file() {
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
    let started = Instant::now();
    while !file.exists() {
        assert!(started.elapsed() < Duration::from_secs(10), "the log file is not reopened");
        scene.admin.get("/api/health").await.unwrap();
    }
    scene.admin.get("/api/users/me").await.unwrap();
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    assert_eq!(scene.hub.log(), "");
    let (old, new) = (lines(&moved), lines(&file));
    let contains = |log: &[Value], path: &str| log.iter().any(|line| line["fields"]["path"] == path);
    assert!(contains(&old, "/api/rooms") && !contains(&new, "/api/rooms"), "{old:?} {new:?}");
    assert!(contains(&new, "/api/users/me"), "{new:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// Parses each line of the log file as one JSON object.
fn lines(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_start_with_an_unwritable_log_file_is_rejected() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("missing/parlor.log");
    let arguments = ["--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()];
    let output = refused(&arguments, &[("PARLOR_LOG_FILE", file.to_str().unwrap())]);
    assert!(output.contains("cannot write the log") && output.contains("missing/parlor.log"), "{output}");
}

#[test]
fn completions_and_the_manual_are_printed() {
    assert!(ok(&["completions", "bash"]).contains("_parlor"));
    assert!(ok(&["man"]).starts_with(".ie"));
}
