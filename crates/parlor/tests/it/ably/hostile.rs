//! Hostile clients: malformed and oversized frames, wrong serials, floods. The hub answers with typed errors, never
//! panics, and keeps serving other clients.

use parlor_testkit::ably::{Ably, AblyEvent, presence, text, text_of};
use parlor_testkit::seed;
use parlor_testkit::socket::{NotUpgraded, TEST_TIMEOUT};
use parlor_wire::ably::frames::{Action, Format, Frame, PresenceMessage};
use parlor_wire::ably::presence::PresenceAction;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::{connect, key, project, with_key};
use crate::scene::Scene;

/// Parameters of a connection.
type Query<'a> = Vec<(&'a str, &'a str)>;

struct Witness {
    client: Ably,
    said: usize,
}

impl Witness {
    async fn new(scene: &Scene, key: &str) -> Self {
        let mut client = with_key(scene.url(), key, Format::Json).await;
        client.attach("witness").await.unwrap();
        Self { client, said: 0 }
    }

    /// Asserts that the hub did not panic and still serves other clients.
    async fn is_served(&mut self, scene: &Scene) {
        self.said += 1;
        let said = format!("served {}", self.said);
        self.client.say("witness", "n", &said).await.unwrap();
        assert_eq!(text_of(&self.client.messages("witness", 1).await.unwrap()[0]), said);
        scene.assert_never_panicked();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_frames_get_a_typed_error() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut witness = Witness::new(&scene, &key).await;
    let deep = format!(r#"{{"action":15,"channel":"c","messages":{}"#, "[".repeat(60_000));
    let deep_data = format!(
        r#"{{"action":15,"channel":"c","msgSerial":0,"messages":[{{"data":{}1{}}}]}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let frames = [
        "",
        " ",
        "{",
        "null",
        "7",
        "[]",
        "{}",
        "\"x\"",
        r#"{"action":null}"#,
        r#"{"action":"15"}"#,
        r#"{"action":99}"#,
        r#"{"action":-1}"#,
        r#"{"action":15,"action":15}"#,
        r#"{"action":10}"#,
        r#"{"action":10,"channel":7}"#,
        r#"{"action":12}"#,
        r#"{"action":14,"channel":"c"}"#,
        r#"{"action":15,"channel":"c"}"#,
        r#"{"action":15,"channel":"c","messages":{},"msgSerial":0}"#,
        r#"{"action":15,"channel":"c","messages":[{"data":1}],"msgSerial":0}"#,
        r#"{"action":15,"channel":"c","messages":[{"data":"?","encoding":"base64"}],"msgSerial":0}"#,
        r#"{"action":15,"channel":"c","messages":[{"extras":[]}],"msgSerial":0}"#,
        r#"{"action":15,"channel":"c","messages":[],"msgSerial":0}"#,
        r#"{"action":15,"channel":"c","messages":[{"name":"n"}],"msgSerial":-1}"#,
        r#"{"action":17}"#,
        r#"{"action":17,"auth":{"accessToken":""}}"#,
        r#"{"action":17,"auth":{"accessToken":"x.y.z"}}"#,
        r#"{"action":4,"connectionId":"x"}"#,
        r#"{"action":1,"msgSerial":0,"count":1}"#,
        r#"{"action":11,"channel":"c"}"#,
        &deep,
        &deep_data,
    ];
    for text in frames {
        let mut client = with_key(scene.url(), &key, Format::Json).await;
        client.send_bytes(text.as_bytes().to_vec()).await.unwrap();
        assert_answered(&mut client, &format!("{text:.100}")).await;
        witness.is_served(&scene).await;
    }
    // Binary on a JSON connection, and text on a msgpack connection.
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    client.send_message(Message::binary(br#"{"action":0}"#.to_vec())).await.unwrap();
    assert_answered(&mut client, "binary").await;
    let mut client = with_key(scene.url(), &key, Format::Msgpack).await;
    client.send_message(Message::text(r#"{"action":0}"#)).await.unwrap();
    assert_answered(&mut client, "text").await;
    witness.is_served(&scene).await;
    scene.ends_well().await;
}

/// Asserts that the next frames are errors, or that the connection was closed with a code for it. A frame that the hub
/// ignores is answered by the reply to a HEARTBEAT.
async fn assert_answered(client: &mut Ably, case: &str) {
    // The hub may have closed the connection already.
    let _ = client.send(&Frame { id: Some("end".into()), ..Frame::new(Action::Heartbeat) }).await;
    loop {
        match client.next().await.unwrap_or_else(|error| panic!("{case}: {error:#}")) {
            AblyEvent::Closed(code) => {
                return assert!(
                    [1000, 1002, 1003, 1007, 1008, 1009].contains(&code),
                    "{case}: closed with {code}"
                );
            }
            AblyEvent::Frame(frame) if frame.action == Action::Heartbeat => return,
            AblyEvent::Frame(frame) => {
                let actions = [Action::Error, Action::Nack, Action::Disconnected];
                assert!(actions.contains(&frame.action), "{case}: {frame:?}");
                let error = frame.error.expect("an error has a reason");
                assert!(error.code >= 40000 && !error.message.is_empty(), "{case}: {error:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_messages_are_refused_and_the_connection_stays() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut witness = Witness::new(&scene, &key).await;
    for format in [Format::Json, Format::Msgpack] {
        let mut client = Ably::open(scene.url(), format, &[("key", &key)]).await.unwrap();
        let details = client.connected().await.unwrap().connection_details.unwrap();
        let limit = details.max_message_size.unwrap() as usize;
        assert!(limit >= 512 * 1024, "{limit}");
        assert!(details.max_frame_size.unwrap() as usize >= limit);
        client.say("large", "n", &"x".repeat(limit - 1000)).await.unwrap();
        let serial = client.publish("large", vec![text("n", &"x".repeat(limit + 1))]).await.unwrap();
        assert_eq!(client.refused(serial).await.unwrap().code, 40009);
        client.say("large", "n", "after").await.unwrap();
        // A frame over the limit of frames ends the connection or gets an error.
        let huge = format!(r#"{{"action":0,"id":"{}"}}"#, "x".repeat(8 * 1024 * 1024));
        if client.send_bytes(huge.into_bytes()).await.is_ok() {
            assert_answered(&mut client, "8 MB").await;
        }
        witness.is_served(&scene).await;
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_and_wrong_serials_are_answered_once_each() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut witness = Witness::new(&scene, &key).await;
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    client.attach("c").await.unwrap();
    let first = client.say("c", "n", "first").await.unwrap();
    // The same serial is the same publish, whatever its content.
    client.set_serial(0);
    assert_eq!(client.say("c", "n", "first").await.unwrap(), first);
    // A gap is no error.
    client.set_serial(1_000_000);
    client.say("c", "n", "after a gap").await.unwrap();
    client.set_serial(u64::MAX - 1);
    let serial = client.publish("c", vec![text("n", "the last one")]).await.unwrap();
    let _ = client.outcome(serial).await.unwrap();
    let messages = client.messages("c", 2).await.unwrap();
    assert_eq!(messages.iter().map(text_of).collect::<Vec<_>>(), ["first", "after a gap"]);
    witness.is_served(&scene).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledgements_of_a_client_are_ignored_or_refused() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut witness = Witness::new(&scene, &key).await;
    let mut client = with_key(scene.url(), &key, Format::Msgpack).await;
    for _ in 0..100 {
        let ack = Frame { msg_serial: Some(0), count: Some(u64::MAX), ..Frame::new(Action::Ack) };
        if client.send(&ack).await.is_err() {
            break;
        }
    }
    assert_answered(&mut client, "ACK").await;
    witness.is_served(&scene).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_do_not_affect_other_clients() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut witness = Witness::new(&scene, &key).await;
    let mut rng = seed::rng();
    for round in 0..60 {
        let format = [Format::Json, Format::Msgpack][rng.below(2) as usize];
        let valid = Frame {
            msg_serial: Some(rng.below(5)),
            messages: Some(vec![text("name", "data")]),
            ..Frame::of_channel(Action::Message, "c")
        };
        let mut bytes = format.encode(&valid);
        for _ in 0..=rng.below(4) {
            let index = rng.below(bytes.len() as u64) as usize;
            bytes[index] ^= 1 << rng.below(7);
        }
        bytes.truncate(bytes.len() - (rng.below(4) * rng.below(10)) as usize);
        let mut client = with_key(scene.url(), &key, format).await;
        let message = match (format, String::from_utf8(bytes.clone())) {
            (Format::Json, Ok(text)) => Message::text(text),
            _ => Message::binary(bytes),
        };
        client.send_message(message).await.unwrap();
        if rng.below(2) == 0 {
            client.kill().await.unwrap();
        } else {
            let ended = tokio::time::timeout(TEST_TIMEOUT, client.so_far()).await;
            assert!(ended.is_ok(), "the hub answers or closes the connection");
        }
        if round % 10 == 0 {
            witness.is_served(&scene).await;
        }
    }
    witness.is_served(&scene).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_channels_and_members_of_one_connection_are_bounded() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut witness = Witness::new(&scene, &key).await;
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    for n in 0..2_000 {
        let attach = Frame::of_channel(Action::Attach, "x");
        let attach = Frame { channel: Some(format!("flood-{n}").into()), ..attach };
        if client.feed(&attach).await.is_err() {
            break;
        }
    }
    // The hub attaches the channels, refuses some of them, or closes the connection.
    let _ = client.flush().await;
    let _ = client.so_far().await;
    witness.is_served(&scene).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_one_channel_and_changes_of_one_frame_are_bounded() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    let name = |n: usize| format!("[?a={n}]chat");
    for n in 0..8 {
        client.attach(&name(n)).await.unwrap();
    }
    for refused in [name(8), format!("[?a={}]chat", "x".repeat(2_000))] {
        client.send(&Frame::of_channel(Action::Attach, &refused)).await.unwrap();
        let error = client.wait_on(Action::Error, &refused).await.unwrap().error.unwrap();
        assert!([90021, 40010].contains(&error.code), "{error:?}");
    }
    let change = PresenceMessage { client_id: Some("ann".into()), ..presence(PresenceAction::Enter) };
    let serial = client.take_serial();
    let changes = Frame {
        msg_serial: Some(serial),
        presence: Some(vec![change; 1001]),
        ..Frame::of_channel(Action::Presence, "chat")
    };
    client.send(&changes).await.unwrap();
    assert_eq!(client.refused(serial).await.unwrap().code, 40000);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_without_or_with_wrong_parameters_are_refused() {
    let scene = Scene::start().await;
    let ann = scene.person("ann").await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let token = super::token(&ann).await;
    let long = "x".repeat(5_000);
    let cases: Vec<(Query<'_>, &[u32])> = vec![
        (vec![], &[40106, 40101, 40005]),
        (vec![("key", "")], &[40106, 40101, 40005]),
        (vec![("key", "x")], &[40005, 40101]),
        (vec![("key", &long)], &[40005, 40101]),
        (vec![("access_token", "")], &[40106, 40101, 40005, 40140]),
        (vec![("access_token", &long)], &[40005, 40101, 40140, 40144]),
        (vec![("access_token", ann.token())], &[40101, 40140, 40144]),
        (vec![("access_token", &token), ("clientId", "somebody")], &[40102]),
        (vec![("key", &key), ("v", "99")], &[40000, 40003]),
        (vec![("key", &key), ("clientId", "*\u{0}")], &[40012, 40003, 40000]),
    ];
    for (query, codes) in cases {
        let shown = format!("{query:.80?}");
        let mut client = match Ably::open(scene.url(), Format::Json, &query).await {
            Ok(client) => client,
            Err(error) => {
                let status = error.downcast::<NotUpgraded>().unwrap().0;
                assert!([400, 401, 414, 431].contains(&status), "{shown}: {status}");
                continue;
            }
        };
        let error = client.error().await.unwrap_or_else(|error| panic!("{shown}: {error:#}"));
        assert!(codes.contains(&error.code), "{shown}: {error:?}");
        client.closed().await.unwrap();
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_chat_messages_are_refused_and_the_room_stays_as_it_was() {
    let scene = Scene::start().await;
    let ann = scene.person("ann").await;
    let room = ann.make_room("kitchen", &[]).await.unwrap();
    let channel = project(&room);
    let mut client = connect(&ann, Format::Json).await;
    client.attach(&channel).await.unwrap();
    let good = super::chat(&ann, "ann", &room, "good", "g1");
    let with = |field: &str, value: serde_json::Value| {
        let mut data = good.clone();
        data[field] = value;
        data.to_string()
    };
    let bad = [
        "{}".to_owned(),
        "[]".into(),
        "x".into(),
        "null".into(),
        with("type", json!("unknown")),
        with("type", json!(7)),
        with("from", json!(null)),
        with("messageId", json!("")),
        with("messageId", json!("../x")),
        with("messageId", json!("x".repeat(500))),
        with("text", json!("x".repeat(100_001))),
        with("projectId", json!("../other")),
    ];
    for data in bad {
        let message =
            parlor_wire::ably::frames::Message { encoding: Some("json".into()), ..text("message", &data) };
        let serial = client.publish(&channel, vec![message]).await.unwrap();
        let error = client.refused(serial).await.unwrap_or_else(|error| panic!("{data:.100}: {error:#}"));
        assert!((40000..50000).contains(&error.code), "{data:.100}: {error:?}");
    }
    assert!(ann.history(&room).await.unwrap().is_empty());
    client.say_json(&channel, "message", &good).await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_channels_members_and_messages_are_settings() {
    let scene = Scene::with(&[
        ("PARLOR_MAX_ABLY_CHANNELS", "2"),
        ("PARLOR_MAX_ABLY_MESSAGE_SIZE", "70000"),
        ("PARLOR_MAX_PRESENCE_MEMBERS", "4"),
        ("PARLOR_MAX_PRESENCE_MEMBERS_PER_CHANNEL", "2"),
        ("PARLOR_MAX_PRESENCE_MEMBERS_PER_CONNECTION", "3"),
        ("PARLOR_MAX_PRESENCE_MEMBER_SIZE", "1024"),
    ])
    .await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut client = Ably::open(scene.url(), Format::Json, &[("key", &key)]).await.unwrap();
    let details = client.connected().await.unwrap().connection_details.unwrap();
    assert_eq!(details.max_message_size, Some(70_000));
    for channel in ["a", "b"] {
        client.attach(channel).await.unwrap();
    }
    client.send(&Frame::of_channel(Action::Attach, "c")).await.unwrap();
    assert_eq!(client.wait_on(Action::Error, "c").await.unwrap().error.unwrap().code, 90021);
    let serial = client.publish("a", vec![text("n", &"x".repeat(70_001))]).await.unwrap();
    assert_eq!(client.refused(serial).await.unwrap().code, 40009);

    let mut other = with_key(scene.url(), &key, Format::Msgpack).await;
    let long = "x".repeat(1_100);
    let enters = [
        (0, "a", "1", "", None),
        (0, "a", "2", "", None),
        (0, "a", "3", "", Some(50003)),
        (0, "b", "1", &*long, Some(40009)),
        (0, "b", "1", "", None),
        (0, "b", "2", "", Some(50003)),
        (1, "b", "3", "", None),
        (1, "c", "1", "", Some(50003)),
    ];
    for (connection, channel, member, data, code) in enters {
        let client = [&mut client, &mut other].into_iter().nth(connection).unwrap();
        let enter = client.send_presence(channel, PresenceAction::Enter, Some(member), Some(data)).await;
        let outcome = client.outcome(enter.unwrap()).await.unwrap();
        assert_eq!(outcome.err().map(|error| error.code), code, "{connection} {channel} {member}");
    }
    scene.ends_well().await;
}
