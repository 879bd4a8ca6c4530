//! Tests of processes killed during a backup, a restore or a migration: the hub starts afterwards, with
//! either all of the old or all of the new data.

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

/// Runs the command to its end and returns its duration.
async fn full_duration(arguments: &[&str]) -> Duration {
    let began = Instant::now();
    let status = command(arguments).status().await.unwrap();
    assert!(status.success());
    began.elapsed()
}

/// Runs the command and kills it after a random time below `max`, unless it ends before.
async fn kill_at_random(arguments: &[&str], max: Duration, rng: &mut Rng) {
    let mut child = command(arguments).spawn().unwrap();
    let delay = Duration::from_micros(rng.below(max.as_micros() as u64));
    let _ = tokio::time::timeout(delay, child.wait()).await;
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

async fn texts_in(admin: &RestClient, room: &str) -> Vec<String> {
    contents(&admin.history(room).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_backup_leaves_a_complete_file_or_none_and_does_not_affect_the_hub() {
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
    let duration = full_duration(&arguments).await;
    let (mut none, mut some) = (0, 0);
    for round in 0..ROUNDS {
        std::fs::remove_file(&file).ok();
        kill_at_random(&arguments, duration * 3 / 2, &mut rng).await;
        scene.admin.post_message(&room, &format!("round {round}")).await.unwrap();
        if !file.exists() {
            none += 1;
            continue;
        }
        some += 1;
        restore(&file, &restored).await;
        let hub = HubCommand::process(PARLOR, &restored).start().await.unwrap();
        assert!(texts_in(&hub.admin().await.unwrap(), &room).await.len() >= 50 + round as usize);
        drop(hub);
        std::fs::remove_dir_all(&restored).unwrap();
    }
    println!("{some} complete files, {none} times none");
    // A backup also works after a hub was killed, and removes what interrupted backups left behind.
    scene.hub.crash().await.unwrap();
    backup(scene.data(), &file).await;
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 1);
    let hub = scene.command.start().await.unwrap();
    assert_eq!(texts_in(&scene.admin.at(hub.url()), &room).await.len(), 50 + ROUNDS as usize);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_restore_leaves_all_of_the_old_or_all_of_the_new_data() {
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
    let duration = full_duration(&arguments).await;
    let (mut old, mut new) = (0, 0);
    for round in 0..ROUNDS {
        // When the restore starts, the database has a write-ahead log that is not empty.
        let mut hub = scene.command.start().await.unwrap();
        let admin = hub.admin().await.unwrap();
        let before = texts_in(&admin, &room).await;
        admin.post_message(&room, &format!("round {round}")).await.unwrap();
        hub.crash().await.unwrap();
        kill_at_random(&arguments, duration * 3 / 2, &mut rng).await;
        let mut hub = scene.command.start().await.unwrap();
        let after = texts_in(&hub.admin().await.unwrap(), &room).await;
        if after == ["old"] {
            new += 1;
        } else {
            old += 1;
            assert_eq!(after, [before, vec![format!("round {round}")]].concat(), "neither old nor new");
        }
        assert!(!scene.data().join(".restore").exists(), "start-up removes the staging directory");
        hub.crash().await.unwrap();
    }
    println!("{old} times the old, {new} times the new");
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    let found: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(found, "ok");
}

/// Creates a database of the first schema, with a room and 500 messages.
fn create_first_schema(data: &Path) {
    let database = rusqlite::Connection::open(data.join("parlor.db")).unwrap();
    database.execute_batch(include_str!("../../../fixtures/schema-1.sql")).unwrap();
    let insert = "INSERT INTO messages (seq, id, at, room, sender_kind, sender, sender_name, kind, text, source) \
                 VALUES (?1, ?2, ?3, 'r1', 0, 'u1', 'Ada', 0, ?4, 'client')";
    for seq in 10..510_i64 {
        let at = 1_700_000_000_000_000 + seq;
        let (id, text) = (format!("m{seq}"), format!("message {seq}"));
        database.execute(insert, rusqlite::params![seq, id, at, text]).unwrap();
        database.execute("INSERT INTO log VALUES (?1, ?2, 0, 'r1', ?3, NULL)", (seq, at, id)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_an_earlier_schema_is_restored_and_migrated() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    create_first_schema(old.path());
    let file = old.path().join("backup.tar");
    backup(old.path(), &file).await;
    restore(&file, new.path()).await;
    let hub = HubCommand::process(PARLOR, new.path()).start().await.unwrap();
    assert_eq!(texts_in(&hub.admin().await.unwrap(), "r1").await.len(), 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_start_killed_during_the_migration_the_next_start_succeeds() {
    let mut rng = seed::rng();
    let first = tempfile::tempdir().unwrap();
    create_first_schema(first.path());
    let fresh = || {
        let data = tempfile::tempdir().unwrap();
        std::fs::copy(first.path().join("parlor.db"), data.path().join("parlor.db")).unwrap();
        data
    };
    let data = fresh();
    let started = Instant::now();
    drop(HubCommand::process(PARLOR, data.path()).start().await.unwrap());
    let duration = started.elapsed();
    for _ in 0..ROUNDS {
        let data = fresh();
        let path = data.path().to_str().unwrap().to_owned();
        kill_at_random(&["--listen", "127.0.0.1:0", "--data", &path], duration, &mut rng).await;
        let hub = HubCommand::process(PARLOR, data.path()).start().await.unwrap();
        let texts = texts_in(&hub.admin().await.unwrap(), "r1").await;
        assert_eq!((texts.len(), texts[499].as_str()), (500, "message 509"));
    }
    // Repeat the kills with an empty data directory.
    for _ in 0..ROUNDS / 2 {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().to_str().unwrap().to_owned();
        kill_at_random(&["--listen", "127.0.0.1:0", "--data", &path], duration, &mut rng).await;
        let hub = HubCommand::process(PARLOR, data.path()).start().await.unwrap();
        hub.admin().await.unwrap();
    }
}
