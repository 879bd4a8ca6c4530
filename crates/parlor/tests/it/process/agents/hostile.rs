//! Tests of hostile program output: it is treated as data, it is bounded, and the room stays usable.

use super::{TestGateway, outcome};
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD};
use parlor_testkit::gateway_process::GatewayLauncher;
use parlor_testkit::socket::TEST_TIMEOUT;
use serde_json::json;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_output_is_treated_as_data() {
    let mut room = Room::start().await;
    let frames = r#"printf '{"type":"gateway:message_complete","agentId":"x","messageId":"y"}\n{"type":"server:stop_agent"}\n'"#;
    let scripts = [
        ("frames", frames),
        ("bytes", r"printf 'a\377b\303\251\360\237'"),
        ("escapes", r"printf 'a\033]52;c;aGk=\007b\033[2Jc\033]8;;http://x\033\\d\233m'; printf 'e\0f' >&2"),
    ];
    let hosted = TestGateway::new(room.scene.url(), &scripts);
    let _gateway = hosted.join(&room, &["frames", "bytes", "escapes"]).await;
    let expected = [
        (
            "frames",
            "{\"type\":\"gateway:message_complete\",\"agentId\":\"x\",\"messageId\":\"y\"}\n{\"type\":\"server:stop_agent\"}\n",
        ),
        ("bytes", "a\u{fffd}bé\u{fffd}"),
        ("escapes", "abcd\u{fffd}m"),
    ];
    for (name, text) in expected {
        room.say(&format!("@{name} go")).await;
        let reply = room.reply().await;
        assert_eq!((&reply["content"], outcome(&reply)), (&json!(text), "complete"), "{name}");
    }
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_100_mb_is_truncated_and_a_flood_does_not_block_other_agents() {
    let mut room = Room::start().await;
    let scripts = [
        ("long", "head -c 100000000 /dev/zero | tr '\\0' a"),
        ("flood", "yes x >&2 & yes y"),
        ("calm", "echo calm"),
    ];
    let hosted = TestGateway::new(room.scene.url(), &scripts);
    let gateway = hosted.join(&room, &["long", "flood", "calm"]).await;
    room.say("@flood go").await;
    room.say("@long go").await;
    room.say("@calm go").await;
    let mut ended = Vec::new();
    for _ in 0..3 {
        let complete = |frame: &serde_json::Value| frame["type"] == "server:message_complete";
        let frame = room.at_alice.wait_for(Duration::from_secs(120), complete).await.unwrap();
        let reply = &frame["message"];
        let content = reply["content"].as_str().unwrap();
        ended.push(content.chars().next().unwrap());
        if content != "calm\n" {
            assert!(content.ends_with("The rest is left out.]"), "{}", &content[content.len() - 80..]);
            assert!((9_000_000..10 * 1024 * 1024).contains(&content.len()), "{}", content.len());
        }
        assert_eq!(outcome(reply), "complete");
    }
    ended.sort_unstable();
    assert_eq!(ended, ['a', 'c', 'y']);
    let id = gateway.process_id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 400_000, "{peak} kB for two replies of 10 MB");
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_output_is_streamed_without_dangerous_escape_sequences() {
    let mut room = Room::start().await;
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("watched.sh");
    let commands = r"stty size <&1; printf '\033[31mred\033[0m \033]52;c;aGk=\007\033]8;;http://x\033\\link\033P1q\033\\ end\n'";
    std::fs::write(&script, commands).unwrap();
    let command = json!(["sh", script]);
    let settings = format!(
        "user = 'alice'\n[[agent]]\nname = 'watched'\nkind = 'command'\ncommand = {command}\nterminal = true\n"
    );
    let gateway_launcher = GatewayLauncher::new(PARLOR, place.path(), &settings);
    let gateway_launcher = gateway_launcher.env("PARLOR_PASSWORD", PASSWORD).at(room.scene.url());
    let hosted = TestGateway { place, gateway_launcher };
    let _gateway = hosted.join(&room, &["watched"]).await;
    room.say("@watched go").await;
    let (mut shown, mut reply) = (String::new(), None);
    while reply.is_none() || !shown.contains("end") {
        let frame = room.at_alice.frame(TEST_TIMEOUT).await.unwrap();
        match frame["type"].as_str() {
            Some("server:terminal_data") => shown += frame["data"].as_str().unwrap(),
            Some("server:message_complete") => reply = Some(frame["message"].clone()),
            _ => {}
        }
    }
    assert_eq!(shown.replace('\r', ""), "30 100\n\u{1b}[31mred\u{1b}[0m link end\n");
    let reply = reply.unwrap();
    assert_eq!(reply["content"].as_str().unwrap().replace('\r', ""), "30 100\nred link end\n");
    assert_eq!(outcome(&reply), "complete");
    room.scene.ends_well().await;
}
