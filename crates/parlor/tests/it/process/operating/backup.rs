//! Tests of backups of a busy hub, and of restoring them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parlor_testkit::agentim::{Ack, Client, message};
use parlor_testkit::hub::{ADMIN, HubCommand, PASSWORD};
use parlor_testkit::oracle::Oracle;
use parlor_testkit::rest::RestClient;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::process::command_line::{ok, refused};
use crate::scene::{PARLOR, Scene, assert_refused, bytes_in, contains, make_key};

/// Messages per second of all writers together.
const MESSAGES_PER_SECOND: u32 = 500;
const WRITERS: u32 = 5;
const ROOMS: usize = 3;

type Shared = Arc<std::sync::Mutex<Oracle>>;

/// Posts messages at a fixed rate until `stop` is set, and waits until all are acknowledged.
async fn write(
    name: String,
    person: RestClient,
    rooms: Vec<String>,
    oracle: Shared,
    stop: watch::Receiver<bool>,
) {
    let mut client = Client::connect(&person).await.unwrap();
    let mut interval = tokio::time::interval(Duration::from_secs(1) * WRITERS / MESSAGES_PER_SECOND);
    interval.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut count, mut in_flight) = (0, 0);
    while !*stop.borrow() || in_flight > 0 {
        tokio::select! {
            _ = interval.tick(), if !*stop.borrow() => {
                let (id, room) = (format!("{name}-{count}"), &rooms[count % rooms.len()]);
                let content = format!("{id} says {}", "something ".repeat(count % 20));
                oracle.lock().unwrap().sending(&name, room, &id, &content);
                client.send(&message(room, &content, &id)).await.unwrap();
                (count, in_flight) = (count + 1, in_flight + 1);
            }
            frame = client.frame(TEST_TIMEOUT) => {
                if let Some(ack) = Ack::of(&frame.unwrap()).unwrap() {
                    oracle.lock().unwrap().acknowledged(ack);
                    in_flight -= 1;
                }
            }
        }
    }
}

fn acked_in(oracle: &Shared) -> usize {
    oracle.lock().unwrap().acks()
}

pub async fn backup(data: &Path, file: &Path) -> String {
    let (data, file) = (data.to_str().unwrap().to_owned(), file.to_str().unwrap().to_owned());
    tokio::task::spawn_blocking(move || ok(&["--data", &data, "backup", &file])).await.unwrap()
}

pub async fn restore(file: &Path, data: &Path) -> String {
    let (data, file) = (data.to_str().unwrap().to_owned(), file.to_str().unwrap().to_owned());
    tokio::task::spawn_blocking(move || ok(&["--data", &data, "restore", &file])).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_backups_of_a_busy_hub_each_restore_to_a_prefix_of_every_room() {
    let scene = Scene::process().await;
    let people: Vec<(String, RestClient)> = {
        let mut people = Vec::new();
        for n in 0..WRITERS {
            let name = format!("writer-{n}");
            people.push((name.clone(), scene.person(&name).await));
        }
        people
    };
    let members: Vec<&RestClient> = people.iter().map(|(_, person)| person).collect();
    let mut rooms = Vec::new();
    for n in 0..ROOMS {
        rooms.push(scene.admin.make_room(&format!("room {n}"), &members).await.unwrap());
    }
    let (oracle, (stop, stopped)) = (Shared::default(), watch::channel(false));
    let mut writers = JoinSet::new();
    for (name, person) in people {
        writers.spawn(write(name, person, rooms.clone(), oracle.clone(), stopped.clone()));
    }
    let mut listener = Client::connect(&scene.admin).await.unwrap();
    let position = listener.join(&rooms[0]).await.unwrap();

    let files = tempfile::tempdir().unwrap();
    let mut made: Vec<(PathBuf, usize)> = Vec::new();
    for n in 0..10 {
        let file = files.path().join(format!("{n}.tar"));
        // Wait for 200 more messages between two backups.
        let target = acked_in(&oracle) + 200;
        while acked_in(&oracle) < target {
            listener.frame(TEST_TIMEOUT).await.unwrap();
        }
        let acked_before = acked_in(&oracle);
        let printed = backup(scene.data(), &file).await;
        assert!(printed.contains("Wrote and verified"), "{printed}");
        made.push((file, acked_before));
    }
    stop.send(true).unwrap();
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    let mut histories: Vec<Vec<Value>> = Vec::new();
    for room in &rooms {
        let history = scene.admin.history(room).await.unwrap();
        assert_eq!(oracle.lock().unwrap().check(room, &history), []);
        histories.push(history);
    }
    println!("{} messages were acknowledged", acked_in(&oracle));

    let mut found_before = 0;
    for (file, acked_before) in made {
        let data = files.path().join("restored");
        restore(&file, &data).await;
        let hub = HubCommand::process(PARLOR, &data).start().await.unwrap();
        let admin = hub.admin().await.unwrap();
        let mut found = 0;
        for (room, full) in rooms.iter().zip(&histories) {
            let history = admin.history(room).await.unwrap();
            assert!(history.len() <= full.len() && history == full[..history.len()], "not a prefix");
            found += history.len();
        }
        assert!(found >= acked_before, "{found} found, {acked_before} were acknowledged before the backup");
        assert!(found > found_before, "later backups contain more messages");
        found_before = found;
        // Positions of clients belong to the old epoch, so the restored hub requires a resync.
        let mut client = Client::connect(&admin).await.unwrap();
        let joined = client.join_since(&rooms[0], &position).await.unwrap();
        assert!(joined.resync && joined.missed.is_empty(), "{joined:?}");
        assert_ne!(joined.position.split('-').next(), position.split('-').next());
        client.say_and_wait(&rooms[0], "and on it goes", "after the restore").await.unwrap();
        drop(hub);
        std::fs::remove_dir_all(&data).unwrap();
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_contains_uploads_and_keys_but_neither_sign_ins_nor_the_signing_key() {
    let mut scene = Scene::process().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    scene.admin.post_message(&room, "precious").await.unwrap();
    let (_, key) = make_key(&scene.admin, &["read"]).await;
    let uploads = scene.data().join("uploads/ab");
    std::fs::create_dir_all(&uploads).unwrap();
    std::fs::write(uploads.join("cdef"), "a picture").unwrap();
    std::fs::write(uploads.join(".unfinished"), "canary-unfinished").unwrap();

    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("backup.tar");
    std::fs::write(&file, "an older one").unwrap();
    let output = backup(scene.data(), &file).await;
    assert!(output.contains("1 uploaded file.") && output.contains("as private as"), "{output}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 1, "no staging file is left");
    let bytes = std::fs::read(&file).unwrap();
    assert!(contains(&bytes, "precious") && contains(&bytes, "a picture"));
    let signing_key = std::fs::read(scene.data().join("token.key")).unwrap();
    assert!(!bytes.windows(signing_key.len()).any(|window| window == signing_key));
    // The ID of the sign-in stands for all its data.
    let database = rusqlite::Connection::open(scene.data().join("parlor.db")).unwrap();
    let sign_in: String = database.query_row("SELECT id FROM sign_ins", [], |row| row.get(0)).unwrap();
    drop(database);
    for secret in ["canary-unfinished", &sign_in, &key, scene.admin.token()] {
        assert!(!contains(&bytes, secret), "{secret}");
    }

    let output = refused(&["--data", scene.data().to_str().unwrap(), "restore", file.to_str().unwrap()], &[]);
    assert!(output.starts_with("another Parlor is using"), "{output}");
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let data = files.path().join("elsewhere");
    let output = restore(&file, &data).await;
    assert!(output.contains("must sign in again"), "{output}");
    let hub = HubCommand::process(PARLOR, &data).start().await.unwrap();
    assert_refused(&scene.admin.at(hub.url()).get("/api/rooms").await.unwrap(), 401);
    let program = RestClient::outsider(hub.url()).with_token(&key);
    assert_eq!(program.get("/api/rooms").await.unwrap().status, 200, "API keys stay valid");
    let admin = RestClient::sign_in(hub.url(), ADMIN, PASSWORD).await.unwrap();
    assert_eq!(admin.history(&room).await.unwrap()[0]["content"], "precious");
    assert_eq!(std::fs::read_to_string(data.join("uploads/ab/cdef")).unwrap(), "a picture");
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_and_restores_are_in_the_audit_log() {
    let mut scene = Scene::process().await;
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("backup.tar");
    backup(scene.data(), &file).await;
    let audit_entries = async |admin: &RestClient| {
        let entries = admin.get("/api/audit").await.unwrap().data().unwrap();
        let about = |entry: &Value| {
            let action = entry["action"].as_str().unwrap();
            let is_relevant = ["backed_up", "restored"].contains(&action);
            is_relevant.then(|| format!("{} {action}: {}", entry["actor"]["kind"], entry["detail"]))
        };
        entries["items"].as_array().unwrap().iter().rev().filter_map(about).collect::<Vec<_>>()
    };
    let running = audit_entries(&scene.admin).await;
    assert_eq!(running.len(), 1, "{running:?}");
    assert!(running[0].starts_with("\"operator\" backed_up: \"everything up to event "), "{running:?}");
    // A backup without a running hub, and a restore, are recorded too.
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    backup(scene.data(), &file).await;
    let hub = scene.command.start().await.unwrap();
    assert_eq!(audit_entries(&hub.admin().await.unwrap()).await.len(), 2);
    let data = files.path().join("elsewhere");
    restore(&file, &data).await;
    let other = HubCommand::process(PARLOR, &data).start().await.unwrap();
    let restored = audit_entries(&RestClient::sign_in(other.url(), ADMIN, PASSWORD).await.unwrap()).await;
    assert_eq!(restored.len(), 2, "{restored:?}");
    assert!(restored[1].contains("restored: \"everything up to event "), "{restored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_data_is_replaced_only_with_the_flag_and_kept_as_a_copy() {
    let mut scene = Scene::process().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    scene.admin.post_message(&room, "early").await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("backup.tar");
    backup(scene.data(), &file).await;
    scene.admin.post_message(&room, "canary-late").await.unwrap();
    scene.hub.crash().await.unwrap();
    let (data, file) = (scene.data().to_str().unwrap(), file.to_str().unwrap());
    let before = bytes_in(scene.data()).len();
    let output = refused(&["--data", data, "restore", file], &[]);
    assert!(output.contains("--replace"), "{output}");
    assert_eq!(bytes_in(scene.data()).len(), before, "the data directory is unchanged");
    let output = ok(&["--data", data, "restore", file, "--replace"]);
    assert!(output.contains("parlor.db.before-restore"), "{output}");
    assert!(contains(&std::fs::read(scene.data().join("parlor.db.before-restore")).unwrap(), "canary-late"));
    let hub = scene.command.start().await.unwrap();
    let history = hub.admin().await.unwrap().history(&room).await.unwrap();
    assert_eq!(history.len(), 1);
    assert!(!scene.data().join(".restore").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_backups_and_paths_are_rejected_with_a_one_line_error_and_change_nothing() {
    let mut scene = Scene::process().await;
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("backup.tar");
    backup(scene.data(), &file).await;
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    let data = scene.data().to_str().unwrap().to_owned();
    let refuse = |content: &[u8], reason: &str| {
        std::fs::write(&file, content).unwrap();
        let before = std::fs::read(scene.data().join("parlor.db")).unwrap();
        let output = refused(&["--data", &data, "restore", file.to_str().unwrap(), "--replace"], &[]);
        assert!(output.contains(reason) && output.lines().count() == 1, "{output}");
        assert!(std::fs::read(scene.data().join("parlor.db")).unwrap() == before);
    };
    refuse(b"", "not a backup");
    refuse(&[0; 4096], "not a backup");
    refuse(&b"no archive at all\n".repeat(200), "not a backup");
    refuse(&whole[..whole.len() / 2], "damaged");
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    refuse(&changed, "damaged");
    assert!(refused(&["--data", &data, "restore", "no-such.tar", "--replace"], &[]).contains("no-such.tar"));

    let nothing = files.path().join("nothing");
    let output = refused(&["--data", nothing.to_str().unwrap(), "backup", file.to_str().unwrap()], &[]);
    assert!(output.contains("contains no hub data"), "{output}");
    assert!(!nothing.exists());
    let folder = files.path().to_str().unwrap();
    assert!(refused(&["--data", &data, "backup", folder], &[]).contains("is a directory"));
    let output = refused(&["--data", &data, "backup", &format!("{folder}/missing/x.tar")], &[]);
    assert!(output.contains("cannot write to"), "{output}");
}
