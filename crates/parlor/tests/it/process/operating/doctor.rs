//! Tests of `parlor doctor`: one line per check, a fix for each problem, and an exit code for scripts.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::process::command_line::{Done, parlor};
use crate::process::operating::backup::backup;
use crate::scene::Scene;

/// Returns the output of the check `what` with its continuation lines. Asserts the state, and that a problem
/// has a fix.
#[track_caller]
fn line(done: &Done, state: &str, what: &str) -> String {
    let mut lines = done.out.lines().map(str::trim_start);
    let found = lines.find(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(state) && line[state.len()..].trim_start().starts_with(what)
    });
    let found = found.unwrap_or_else(|| panic!("no {state} {what} in {}{}", done.out, done.err));
    let rest: Vec<&str> =
        lines.take_while(|line| !["ok ", "warn ", "fail "].iter().any(|s| line.starts_with(s))).collect();
    if state != "ok" {
        assert!(rest.iter().any(|line| line.starts_with('→')), "no fix: {}", done.out);
    }
    format!("{found} {}", rest.join(" "))
}

async fn doctor(arguments: &[&str], variables: &[(&str, &str)]) -> Done {
    let own = |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
    let arguments = own(&[arguments, &["doctor"]].concat());
    let variables: Vec<(String, String)> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let run = move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        parlor(&arguments, &variables, "")
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checks_pass_for_a_running_hub_and_a_missing_backup_is_a_warning() {
    let mut scene = Scene::process().await;
    let data = scene.data().to_str().unwrap().to_owned();
    std::fs::set_permissions(scene.data(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let listen = scene.url().strip_prefix("http://").unwrap().to_owned();
    let arguments = ["--data", data.as_str(), "--listen", &listen];
    let done = doctor(&arguments, &[]).await;
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    for what in ["settings", "data", "space", "database", "clock", "hub", "address"] {
        line(&done, "ok", what);
    }
    assert!(line(&done, "ok", "database").contains("schema "), "{}", done.out);
    assert!(line(&done, "ok", "hub").contains("The hub is running"), "{}", done.out);
    assert!(line(&done, "warn", "backup").contains("parlor backup FILE"), "{}", done.out);
    assert!(!done.out.contains('\u{1b}'), "no colours without a terminal");

    let file = scene.data().join("backup.tar");
    backup(scene.data(), &file).await;
    let done = doctor(&arguments, &[]).await;
    assert!(line(&done, "ok", "backup").contains("backup.tar"), "{}", done.out);
    std::fs::set_permissions(scene.data(), std::fs::Permissions::from_mode(0o755)).unwrap();
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let done = doctor(&arguments, &[]).await;
    assert_eq!(done.code, 0, "{}", done.out);
    assert!(line(&done, "warn", "data").contains("chmod 700"), "{}", done.out);
    assert!(line(&done, "ok", "hub").contains("is free"), "{}", done.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_problem_is_reported_with_a_fix_and_the_exit_code_is_1() {
    let done = doctor(&[], &[("PARLOR_AUTH_TIMEOUT", "0"), ("PARLOR_LISTN", "x")]).await;
    assert_eq!((done.code, done.err.as_str()), (1, ""));
    assert!(line(&done, "fail", "settings").contains("PARLOR_LISTN"), "{}", done.out);
    assert!(done.out.contains("2 checks failed."), "{}", done.out);

    let mut scene = Scene::process().await;
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let data = scene.data().to_str().unwrap().to_owned();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let missing = scene.data().join("missing/chain.pem");
    let tls = [("PARLOR_TLS_CERT", missing.to_str().unwrap()), ("PARLOR_TLS_KEY", missing.to_str().unwrap())];
    let url = ("PARLOR_PUBLIC_URL", "http://chat.example.org");
    let log = ("PARLOR_LOG_FILE", missing.to_str().unwrap());
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    let version: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let done = doctor(&["--data", &data, "--listen", &listen], &[tls[0], tls[1], url, log]).await;
    assert_eq!(done.code, 1);
    assert!(line(&done, "fail", "database").contains("newer Parlor"), "{}", done.out);
    assert!(line(&done, "fail", "hub").contains("is not available"), "{}", done.out);
    assert!(line(&done, "fail", "address").contains("https"), "{}", done.out);
    assert!(line(&done, "fail", "tls").contains("missing/chain.pem"), "{}", done.out);
    assert!(line(&done, "fail", "log").contains("is not writable"), "{}", done.out);

    // Corrupt a page in the middle of the database.
    let file = scene.data().join("parlor.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database.pragma_update(None, "user_version", version).unwrap();
    drop(database);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[4096..8192].fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    let done = doctor(&["--data", &data, "--listen", "127.0.0.1:0"], &[]).await;
    assert_eq!(done.code, 1);
    line(&done, "fail", "database");
}
