//! Checks that no source drops the handle of a task or thread that it starts: every task has an owner, which
//! awaits it at shutdown (`engine/src/tasks.rs`, a `JoinSet`, a `TaskTracker` or a stored handle).

use super::vocabulary::collect;
use crate::root;
use std::fs;

const FOLDERS: [&str; 5] = ["engine", "server", "agents", "chatmd", "parlor"];

const SPAWNS: [&str; 4] =
    ["tokio::spawn(", "spawn_blocking(", "thread::spawn(", "thread::Builder::new().spawn("];

/// Files that may drop a handle, and how often.
const ALLOWED: [(&str, usize); 3] = [
    // Threads in a system call that cannot be interrupted; they end with their process or their writer.
    ("agents/src/supervisor.rs", 2),
    ("chatmd/src/watch/printer.rs", 1),
    ("parlor/src/chatmd/watch.rs", 1),
];

#[test]
fn every_task_and_thread_has_an_owner() {
    let mut sources = Vec::new();
    FOLDERS.iter().for_each(|name| collect(&root().join("crates").join(name).join("src"), &mut sources));
    assert!(sources.len() > 100, "found only {} files", sources.len());
    for source in sources {
        let text = fs::read_to_string(&source).unwrap();
        let production = text.split(concat!("\n#[cfg", "(test)]")).next().unwrap_or_default();
        let allowed = ALLOWED.iter().find(|(file, _)| source.ends_with(format!("crates/{file}")));
        let allowed = allowed.map_or(0, |(_, count)| *count);
        assert_eq!(dropped_handles(production), allowed, "handles dropped in {}", source.display());
    }
}

#[test]
fn a_handle_is_dropped_by_a_statement_that_only_spawns() {
    let check = |source: &str, expected: usize| assert_eq!(dropped_handles(source), expected, "{source}");
    check("    tokio::spawn(run(app));", 1);
    check("    std::thread::spawn(move || {\n        work();\n    });", 1);
    check("    let _ = tokio::spawn(run());", 1);
    check("    drop(tokio::task::spawn_blocking(work));", 1);
    check("    thread::Builder::new().spawn(work)?;", 1);
    check("    let task = tokio::spawn(run());", 0);
    check("    let _ = tokio::task::spawn_blocking(work).await;", 0);
    check("    tokio::task::spawn_blocking(work).await;", 0);
    check("    tokio::spawn(run())\n}", 0);
    check("    self.tasks.spawn(run());", 0);
    check("    // tokio::spawn(run());", 0);
}

/// Number of statements that start a task or thread and drop its handle.
fn dropped_handles(source: &str) -> usize {
    let places =
        SPAWNS.iter().flat_map(|spawn| source.match_indices(spawn).map(|(at, _)| (at, at + spawn.len())));
    places.filter(|(at, arguments)| is_dropped(source, *at, *arguments)).count()
}

fn is_dropped(source: &str, at: usize, arguments: usize) -> bool {
    let line = source[..at].rsplit('\n').next().unwrap_or_default().trim_start();
    let path = line.trim_end_matches("task::").trim_end_matches("tokio::").trim_end_matches("std::");
    let Some(end) = end_of_arguments(&source[arguments..]) else { return false };
    let behind = source[arguments + end..].trim_start_matches('?');
    match path {
        "" | "let _ = " => behind.starts_with(';'),
        "drop(" => behind.starts_with(");"),
        _ => false,
    }
}

/// Offset behind the closing bracket of a call whose opening bracket precedes `source`.
fn end_of_arguments(source: &str) -> Option<usize> {
    let mut depth = 1;
    source.char_indices().find_map(|(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at + 1)
    })
}
