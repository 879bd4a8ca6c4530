//! `parlor bridge` as a process: kills at random times, its command line, and the documented example.

use crate::chatmd::{BridgeScene, Project};
use crate::process::command_line::{parlor, refused};
use crate::scene::{PARLOR, following, heard, make_key};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway_process::ClientProcess;
use parlor_testkit::rng::Rng;
use parlor_testkit::seed;
use parlor_testkit::socket::TEST_TIMEOUT;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Maximum random time between the last awaited event of a round and the kill.
const MAX_KILL_DELAY: Duration = Duration::from_millis(30);
/// Lines and messages of one round.
const PER_ROUND: u64 = 60;

fn start(scene: &BridgeScene) -> ClientProcess {
    let project = scene.project.path().to_str().unwrap();
    let arguments = ["bridge", project, "--room", &scene.room, "--server", scene.scene.url()];
    let environment = [("PARLOR_KEY".to_owned(), scene.key.clone())];
    ClientProcess::spawn(PARLOR.as_ref(), &arguments, &environment).unwrap()
}

async fn connected(bridge: &mut ClientProcess) {
    bridge.printed(|line| line.contains("connected").then_some(())).await.unwrap();
}

/// Traffic in both directions, with everything that was written.
struct Traffic {
    rng: Rng,
    lines: Vec<String>,
    messages: Vec<String>,
    /// Bytes of the lines in the file.
    written: usize,
}

impl Traffic {
    /// Writes a line of a script. The recipient decides which lines wait for each other.
    fn write_line(&mut self, project: &Project) {
        let number = self.lines.len();
        let recipient = match self.rng.below(4) {
            0 => "all".to_owned(),
            1 => "script".to_owned(),
            _ => format!("x{}", self.rng.below(5)),
        };
        let line = format!("[script-to-{recipient}]: line {number}\n");
        project.write(&line);
        self.written += line.len();
        self.lines.push(format!("line {number}"));
    }

    /// Posts a message of Eve. Some have many lines, so that one append covers several pages of memory.
    async fn post_message(&mut self, at_eve: &mut Client, room: &str) {
        let number = self.messages.len();
        let long = if self.rng.below(6) == 0 { self.rng.below(400) } else { 0 };
        let text: String =
            (0..long).map(|line| format!("\nmessage {number} goes on with line {line}")).collect();
        let text = format!("message {number}{text}");
        at_eve.say_and_wait(room, &text, &format!("m{number}")).await.unwrap();
        self.messages.push(text);
    }

    /// The file must contain each line and each message once, and nothing else.
    fn check_file(&self, content: &str) {
        let mut bytes = self.written;
        let mut before = 0;
        for text in &self.messages {
            let block = format!("[eve-to-all]: {}\n", text.replace('\n', "\n  "));
            let found: Vec<usize> = content.match_indices(&block).map(|(at, _)| at).collect();
            assert_eq!(found.len(), 1, "{block:?} is in the file {} times", found.len());
            assert!(found[0] >= before, "the order of the room is kept");
            before = found[0];
            bytes += block.len();
        }
        assert_eq!(content.len(), bytes, "the file has no other text");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_bridge_loses_and_repeats_nothing() {
    let scene = BridgeScene::new().await;
    let mut traffic = Traffic { rng: seed::rng(), lines: Vec::new(), messages: Vec::new(), written: 0 };
    let mut at_eve = following(&scene.eve, &scene.room).await;
    let mut bridge = start(&scene);
    connected(&mut bridge).await;
    for round in 0..seed::cases(30) {
        // Some rounds kill the bridge while it starts.
        if round % 3 != 2 {
            connected(&mut bridge).await;
        }
        for _ in 0..traffic.rng.below(PER_ROUND) {
            traffic.write_line(&scene.project);
            if traffic.rng.below(2) == 0 {
                traffic.post_message(&mut at_eve, &scene.room).await;
            }
        }
        tokio::time::sleep(Duration::from_micros(traffic.rng.below(MAX_KILL_DELAY.as_micros() as u64))).await;
        bridge.kill_9().await.unwrap();
        bridge = start(&scene);
    }
    connected(&mut bridge).await;
    traffic.write_line(&scene.project);
    traffic.post_message(&mut at_eve, &scene.room).await;
    scene.room_has(traffic.lines.last().unwrap()).await;
    let end = traffic.messages.last().unwrap().lines().last().unwrap();
    scene.project.wait_for(&format!("{end}\n")).await;
    let status = bridge.terminate().await.unwrap();
    assert!(status.success(), "{status}: {}", bridge.output());

    traffic.check_file(&scene.project.content());
    let history = scene.history().await;
    let lines: Vec<String> = history.iter().filter(|text| text.starts_with("line")).cloned().collect();
    assert_eq!(lines, traffic.lines, "each line once, in the order of the file");
    assert_eq!(history.len(), lines.len() + traffic.messages.len(), "no message came back");
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_reports_refused_lines_and_hides_the_key() {
    let scene = BridgeScene::new().await;
    let mut bridge = start(&scene);
    connected(&mut bridge).await;
    scene.project.write(&format!("# comment\n[a-to-eve]: {}\n[a-to-eve]: fine\n", "x".repeat(100_001)));
    let reported = |line: &str| line.contains("line 2 was refused").then(|| line.to_owned());
    let line = bridge.reported(reported).await.unwrap();
    assert!(line.contains("Message exceeds the maximum of 100000 characters"), "{line}");
    scene.room_has("fine").await;
    assert!(bridge.terminate().await.unwrap().success());
    let output = bridge.output();
    assert!(output.contains(&scene.room) && !output.contains(&scene.key), "{output}");
    let state = std::fs::read_to_string(scene.project.path().join(".workplace/.parlor-bridge.json")).unwrap();
    assert!(!state.contains(&scene.key), "the state contains no secret");
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bridge_that_cannot_start_prints_why() {
    let scene = BridgeScene::new().await;
    let project = scene.project.path().to_str().unwrap().to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    let url = scene.scene.url().to_owned();
    let (_, outsider) = make_key(&scene.scene.admin, &["read", "write", "agents"]).await;
    let (room, key) = (scene.room.clone(), scene.key.clone());
    let secrets = tempfile::tempdir().unwrap();
    let key_file = secrets.path().join("key");
    std::fs::write(&key_file, format!("{key}\n")).unwrap();
    let checks = tokio::task::spawn_blocking(move || {
        let attempt = |directory: &str, room: &str, key: &str| {
            refused(&["bridge", directory, "--room", room, "--server", &url], &[("PARLOR_KEY", key)])
        };
        let error = refused(&["bridge", &project, "--room", &room], &[]);
        assert!(error.contains("--key-file") && error.contains("PARLOR_KEY"), "{error}");
        let error = attempt(elsewhere.path().to_str().unwrap(), &room, &key);
        assert!(error.contains(".workplace: it does not exist"), "{error}");
        let error = attempt(&project, "unknown", &key);
        assert_eq!(error, "cannot connect with the room: there is no such room");
        // The failed attempt has not connected the file with its room.
        let error = attempt(&project, &room, &outsider);
        assert_eq!(error, "cannot connect with the room: the account is not a member of the room");
        let done = parlor(&["bridge", &project, "--room", &room, "--key", &key], &[], "");
        assert_eq!(done.code, 2, "a key is never an argument");
    });
    checks.await.unwrap();
    let mut with_file = {
        let project = scene.project.path().to_str().unwrap();
        let arguments = ["bridge", project, "--room", &scene.room, "--key-file", key_file.to_str().unwrap()];
        let environment = [("PARLOR_SERVER".to_owned(), scene.scene.url().to_owned())];
        ClientProcess::spawn(PARLOR.as_ref(), &arguments, &environment).unwrap()
    };
    connected(&mut with_file).await;
    assert!(with_file.terminate().await.unwrap().success());
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_example_works_as_written() {
    let scene = BridgeScene::new().await;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/chatmd/run.sh");
    let programs = Path::new(PARLOR).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let mut agents = Command::new("sh")
        .arg(example)
        .arg(&scene.room)
        .env("PATH", path)
        .env("TMPDIR", temporary.path())
        .env("PARLOR_SERVER", scene.scene.url())
        .env("PARLOR_KEY", &scene.key)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let group = Pid::from_raw(agents.id().unwrap() as i32).unwrap();
    let mut printed = BufReader::new(agents.stdout.take().unwrap()).lines();
    let mut browser = following(&scene.eve, &scene.room).await;
    let talking = async {
        while !printed.next_line().await.unwrap().expect("the example runs").contains("connected") {}
        browser.say_and_wait(&scene.room, "build the parser", "b1").await.unwrap();
        let mut shown = Vec::new();
        loop {
            shown.push(heard(&mut browser).await);
            if shown.last().is_some_and(|message| message["content"] == "released the parser") {
                return shown;
            }
        }
    };
    let shown = tokio::time::timeout(3 * TEST_TIMEOUT, talking).await.expect("the agents answer");
    let lines: Vec<(&str, &str)> = shown
        .iter()
        .map(|message| (message["senderName"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    let expected = [
        ("eve", "build the parser"),
        ("coder (unverified)", "please review the parser"),
        ("reviewer (unverified)", "approved the parser"),
        ("coder (unverified)", "released the parser"),
    ];
    assert_eq!(lines, expected);
    kill_process_group(group, Signal::TERM).unwrap();
    tokio::time::timeout(TEST_TIMEOUT, agents.wait()).await.expect("the example ends").unwrap();
    scene.scene.ends_well().await;
}
