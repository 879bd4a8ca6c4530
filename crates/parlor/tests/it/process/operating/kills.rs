//! Killed while it backs up, restores or migrates: afterwards there is a hub that starts, with all of the old or all of
//! the new.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use parlor_testkit::hub::HubCommand;
use parlor_testkit::rest::RestClient;
use parlor_testkit::rng::Rng;
use parlor_testkit::seed;

use super::backup::{backup, restore};
use crate::scene::{PARLOR, Scene, contents};

const ROUNDS: u32 = 20;

/// How long this takes when nobody kills it.
async fn whole_time(arguments: &[&str]) -> Duration {
    let began = Instant::now();
    let status = command(arguments).status().await.unwrap();
    assert!(status.success());
    began.elapsed()
}

/// Runs it and kills it at a random moment of the time it needs, or lets it end just before.
async fn kill_at_random(arguments: &[&str], whole: Duration, rng: &mut Rng) {
    let mut child = command(arguments).spawn().unwrap();
    let moment = Duration::from_micros(rng.below(whole.as_micros() as u64));
    // It either ends or is killed: there is nothing to wait for but time.
    let _ = tokio::time::timeout(moment, child.wait()).await;
    let _ = child.kill().await;
}

fn command(arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(PARLOR);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PARLOR_")) {
        command.env_remove(name);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true);
    command
}

async fn said_in(admin: &RestClient, room: &str) -> Vec<String> {
    contents(&admin.history(room).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_killed_leaves_a_whole_file_or_none_and_the_hub_alone() {
    let mut rng = seed::rng();
    let mut scene = Scene::process().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    for n in 0..50 {
        scene.admin.post_message(&room, &format!("{n} {}", "word ".repeat(2_000))).await.unwrap();
    }
    let files = tempfile::tempdir().unwrap();
    let (file, restored) = (files.path().join("backup.tar"), files.path().join("restored"));
    let data = scene.data().to_str().unwrap().to_owned();
    let arguments = ["--data", &data, "backup", file.to_str().unwrap()];
    let whole = whole_time(&arguments).await;
    let (mut none, mut some) = (0, 0);
    for round in 0..ROUNDS {
        std::fs::remove_file(&file).ok();
        kill_at_random(&arguments, whole * 3 / 2, &mut rng).await;
        scene.admin.post_message(&room, &format!("round {round}")).await.unwrap();
        if !file.exists() {
            none += 1;
            continue;
        }
        some += 1;
        restore(&file, &restored).await;
        let hub = HubCommand::process(PARLOR, &restored).start().await.unwrap();
        assert!(said_in(&hub.admin().await.unwrap(), &room).await.len() >= 50 + round as usize);
        drop(hub);
        std::fs::remove_dir_all(&restored).unwrap();
    }
    println!("{some} whole files, {none} times none");
    // A killed hub is no hindrance either, and the next backup clears everything away.
    scene.hub.crash().await.unwrap();
    backup(scene.data(), &file).await;
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 1);
    let hub = scene.command.start().await.unwrap();
    assert_eq!(said_in(&scene.admin.at(hub.url()), &room).await.len(), 50 + ROUNDS as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_is_killed_leaves_all_of_the_old_or_all_of_the_new() {
    let mut rng = seed::rng();
    let mut scene = Scene::process().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    scene.admin.post_message(&room, "old").await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("backup.tar");
    backup(scene.data(), &file).await;
    let data = scene.data().to_str().unwrap().to_owned();
    let arguments = ["--data", &data, "restore", file.to_str().unwrap(), "--replace"];
    scene.hub.crash().await.unwrap();
    let whole = whole_time(&arguments).await;
    let (mut old, mut new) = (0, 0);
    for round in 0..ROUNDS {
        // A write-ahead log that is not empty lies beside the database when the restore begins.
        let mut hub = scene.command.start().await.unwrap();
        let admin = hub.admin().await.unwrap();
        let before = said_in(&admin, &room).await;
        admin.post_message(&room, &format!("round {round}")).await.unwrap();
        hub.crash().await.unwrap();
        kill_at_random(&arguments, whole * 3 / 2, &mut rng).await;
        let mut hub = scene.command.start().await.unwrap();
        let after = said_in(&hub.admin().await.unwrap(), &room).await;
        if after == ["old"] {
            new += 1;
        } else {
            old += 1;
            assert_eq!(after, [before, vec![format!("round {round}")]].concat(), "neither old nor new");
        }
        assert!(!scene.data().join(".restore").exists(), "a start clears away what is left");
        hub.crash().await.unwrap();
    }
    println!("{old} times the old, {new} times the new");
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    let found: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// A database of the first schema, with a room and what was said in it.
fn of_the_first_schema(data: &Path) {
    let database = rusqlite::Connection::open(data.join("parlor.db")).unwrap();
    database.execute_batch(include_str!("../../../fixtures/schema-1.sql")).unwrap();
    let words = "INSERT INTO messages (seq, id, at, room, sender_kind, sender, sender_name, kind, text, source) \
                 VALUES (?1, ?2, ?3, 'r1', 0, 'u1', 'Ada', 0, ?4, 'client')";
    for seq in 10..510_i64 {
        let at = 1_700_000_000_000_000 + seq;
        let (id, text) = (format!("m{seq}"), format!("message {seq}"));
        database.execute(words, rusqlite::params![seq, id, at, text]).unwrap();
        database.execute("INSERT INTO log VALUES (?1, ?2, 0, 'r1', ?3, NULL)", (seq, at, id)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_an_earlier_schema_is_restored_and_migrated() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    of_the_first_schema(old.path());
    let file = old.path().join("backup.tar");
    backup(old.path(), &file).await;
    restore(&file, new.path()).await;
    let hub = HubCommand::process(PARLOR, new.path()).start().await.unwrap();
    assert_eq!(said_in(&hub.admin().await.unwrap(), "r1").await.len(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_killed_while_it_migrates_is_followed_by_one_that_succeeds() {
    let mut rng = seed::rng();
    let first = tempfile::tempdir().unwrap();
    of_the_first_schema(first.path());
    let fresh = || {
        let data = tempfile::tempdir().unwrap();
        std::fs::copy(first.path().join("parlor.db"), data.path().join("parlor.db")).unwrap();
        data
    };
    let data = fresh();
    let began = Instant::now();
    drop(HubCommand::process(PARLOR, data.path()).start().await.unwrap());
    let whole = began.elapsed();
    for _ in 0..ROUNDS {
        let data = fresh();
        let path = data.path().to_str().unwrap().to_owned();
        kill_at_random(&["--listen", "127.0.0.1:0", "--data", &path], whole, &mut rng).await;
        let hub = HubCommand::process(PARLOR, data.path()).start().await.unwrap();
        let said = said_in(&hub.admin().await.unwrap(), "r1").await;
        assert_eq!((said.len(), said[499].as_str()), (500, "message 509"));
    }
    // And from nothing.
    for _ in 0..ROUNDS / 2 {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().to_str().unwrap().to_owned();
        kill_at_random(&["--listen", "127.0.0.1:0", "--data", &path], whole, &mut rng).await;
        let hub = HubCommand::process(PARLOR, data.path()).start().await.unwrap();
        hub.admin().await.unwrap();
    }
}
