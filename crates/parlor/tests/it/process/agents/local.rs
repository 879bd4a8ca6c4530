//! Tests of agents that the hub hosts itself: added by command, or defined in its settings file.

use super::{outcome, parlor, parlor_in, registered, wait_for_text};
use crate::gateway::scenes::Room;
use crate::scene::{Scene, following};
use parlor_testkit::gateway_process::gone;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[tokio::test(flavor = "multi_thread")]
async fn an_added_agent_answers_without_a_restart_and_is_online_after_one() {
    let mut room = Room::start().await;
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("slow.sh");
    std::fs::write(&script, "echo up; while :; do sleep 100; done").unwrap();
    let (data, script) = (room.scene.data().to_owned(), script.display().to_string());
    let (data, dir) = (data.to_str().unwrap(), place.path().to_str().unwrap());
    let (_, none) = parlor(&["agent", "list", "--data", data]).await;
    assert!(none.contains("There are no agents yet"), "{none}");

    let add = ["agent", "add", "slow", "command", "--owner", "alice", "--dir", dir, "--data", data];
    let (added, printed) = parlor(&[&add[..], &["--", "sh", &script]].concat()).await;
    assert!(added && printed.contains("write @slow"), "{printed}");
    let (twice, printed) = parlor(&[&add[..], &["--", "sh", &script]].concat()).await;
    assert!(!twice && printed.contains("already"), "{printed}");
    let unknown_kind = ["agent", "add", "x", "martian", "--data", data];
    let (added, printed) = parlor(&unknown_kind).await;
    assert!(!added && printed.contains("is not an agent kind"), "{printed}");
    let (_, printed) = parlor(&["agent", "add", "x", "codex", "--data", data]).await;
    assert!(printed.contains("use acp:codex"), "{printed}");
    let absent =
        ["agent", "add", "absent", "command", "--owner", "alice", "--data", data, "--", "no-such-program"];
    let (added, printed) = parlor(&absent).await;
    assert!(added && printed.contains("no-such-program is not installed"), "{printed}");
    let (_, list) = parlor(&["agent", "list", "--data", data]).await;
    assert!(list.contains("online"), "the agent is online as printed: {list}");
    parlor(&["agent", "rm", "absent", "--data", data]).await;

    let id = registered(&room.alice, "slow").await;
    room.add(&id).await;
    room.say("@slow go").await;
    wait_for_text(&mut room, &mut String::new(), |text| text.contains("up")).await;
    let (_, list) = parlor(&["agent", "list", "--data", data]).await;
    assert!(list.contains("slow") && list.contains("busy"), "{list}");

    room.scene.crash_and_restart().await;
    gone(&script, TEST_TIMEOUT).await.unwrap();
    let alice = room.alice.at(room.scene.url());
    registered(&alice, "slow").await;
    let mut at_alice = following(&alice, &room.room).await;
    at_alice.say_and_wait(&room.room, "@slow again", "again").await.unwrap();
    crate::scene::next(&mut at_alice, "server:message_chunk").await;
    let stop = json!({ "type": "client:stop_generation", "roomId": room.room, "agentId": id });
    at_alice.send(&stop).await.unwrap();
    let reply = crate::scene::next(&mut at_alice, "server:message_complete").await;
    assert_eq!(outcome(&reply["message"]), "cancelled");
    gone(&script, TEST_TIMEOUT).await.unwrap();

    let (removed, printed) = parlor(&["agent", "rm", "slow", "--data", data]).await;
    assert!(removed && printed.contains("Removed slow"), "{printed}");
    assert_eq!(alice.get("/api/agents").await.unwrap().data().unwrap(), json!([]));
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_the_settings_file_is_online_after_the_start() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("parlor.toml");
    let settings = "[[agent]]\nname = 'echo'\nkind = 'command'\ncommand = ['sh', '-c', 'echo $GREETING']\n[agent.environment]\nGREETING = 'canary'\n";
    std::fs::write(&config, settings).unwrap();
    let scene = Scene::process_set(&[("PARLOR_CONFIG", config.to_str().unwrap())]).await;
    let id = registered(&scene.admin, "echo").await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let body = json!({ "memberId": id, "memberType": "agent" });
    scene.admin.post(&format!("/api/rooms/{room}/members"), body).await.unwrap().data().unwrap();
    let mut admin = following(&scene.admin, &room).await;
    admin.say_and_wait(&room, "@echo hello", "1").await.unwrap();
    let reply = crate::scene::next(&mut admin, "server:message_complete").await;
    assert_eq!(reply["message"]["content"], "canary\n");
    let data = scene.data().to_str().unwrap();
    let (removed, printed) = parlor(&["agent", "rm", "echo", "--data", data]).await;
    assert!(!removed && printed.contains("settings file"), "{printed}");
    let log = scene.hub.log() + &scene.hub.stdout();
    assert!(!log.contains("canary"), "the environment of an agent may contain secrets: {log}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_doctor_reports_missing_programs_with_a_fix() {
    let agent = ["gateway", "--agent", "ghost=command:/nowhere/at/all", "doctor"];
    let (passed, printed) = parlor(&agent).await;
    assert!(!passed && printed.contains("needs the program to run"), "{printed}");
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("g.toml");
    let settings = "[[agent]]\nname = 'a'\nkind = 'command'\ncommand = ['no-such-program']\n\
                    [[agent]]\nname = 'b'\nkind = 'command'\ncommand = ['sh']\n";
    std::fs::write(&config, settings).unwrap();
    let (passed, printed) = parlor(&["gateway", "--config", config.to_str().unwrap(), "doctor"]).await;
    assert!(!passed, "{printed}");
    assert!(printed.contains("no-such-program is not installed"), "{printed}");
    assert!(printed.contains("→ Install it"), "{printed}");
    assert!(printed.lines().any(|line| line.contains("ok") && line.contains("It runs")), "{printed}");
    // A program that is too old, one that is not signed in, and one that is ready.
    for (version, signed_in, what, fix) in [
        ("1.0.9", "true", "Claude Code 1.0.9 is too old", "→ claude update"),
        ("2.1.0", "false", "Claude Code 2.1.0 is not signed in", "→ Sign in with `claude auth login`"),
        ("2.1.0", "true", "Claude Code 2.1.0 is signed in and ready", "All checks passed"),
    ] {
        let script = format!(
            "#!/bin/sh\ncase $1 in --version) echo '{version} (Claude Code)' ;; *) echo '{{\"loggedIn\":{signed_in}}}' ;; esac\n"
        );
        let program = place.path().join("claude");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", place.path().display(), std::env::var("PATH").unwrap());
        let arguments = ["gateway", "doctor", "--agent", "coder=claude"];
        let (passed, printed) = parlor_in(place.path(), &[("PATH", &path)], &arguments).await;
        assert_eq!(passed, fix == "All checks passed", "{printed}");
        assert!(printed.contains(what) && printed.contains(fix), "{printed}");
    }
}
