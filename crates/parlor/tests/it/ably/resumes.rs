//! Resumed connections, frame by frame: replay, repeated publishes, and connection keys.

use parlor_testkit::ably::{Ably, text, text_of};
use parlor_wire::ably::frames::{Action, Format, Frame, flags};
use parlor_wire::ably::presence::PresenceAction;
use serde_json::json;

use super::{key, with_key};
use crate::scene::Scene;

const FORMATS: [Format; 2] = [Format::Json, Format::Msgpack];

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_connection_keeps_its_id_and_receives_what_it_missed() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    for format in FORMATS {
        let mut publisher = with_key(scene.url(), &key, format).await;
        let mut client = with_key(scene.url(), &key, format).await;
        let channel = format!("resumed-{format:?}");
        let attached = client.attach(&channel).await.unwrap();
        assert_eq!(attached.flags.unwrap() & flags::RESUMED, 0);
        publisher.say(&channel, "n", "seen").await.unwrap();
        let seen = client.wait_on(Action::Message, &channel).await.unwrap();
        let (id, secret) = (client.connection_id.clone(), client.connection_key.clone());
        client.kill().await.unwrap();
        for missed in ["one", "two"] {
            publisher.say(&channel, "n", missed).await.unwrap();
        }

        let query = [("key", &*key), ("resume", &secret)];
        let mut client = Ably::open(scene.url(), format, &query).await.unwrap();
        let connected = client.connected().await.unwrap();
        assert_eq!((&client.connection_id, connected.error), (&id, None));
        assert_ne!(client.connection_key, secret);
        let attach =
            Frame { channel_serial: seen.channel_serial, ..Frame::of_channel(Action::Attach, &channel) };
        let attached = client.attach_with(attach).await.unwrap();
        assert_ne!(attached.flags.unwrap() & flags::RESUMED, 0);
        publisher.say(&channel, "n", "live").await.unwrap();
        let messages = client.messages(&channel, 3).await.unwrap();
        assert_eq!(messages.iter().map(text_of).collect::<Vec<_>>(), ["one", "two", "live"]);
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_publish_of_a_resumed_connection_is_acknowledged_and_not_delivered_again() {
    let mut scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    let first = client.say("c", "n", "first").await.unwrap();
    let second = client.publish("c", vec![text("n", "second"), text("n", "third")]).await.unwrap();
    let serials = client.acknowledged(second).await.unwrap();
    assert_eq!(serials.len(), 2);

    // Once on the same hub, and once after a restart.
    for _ in 0..2 {
        let secret = client.connection_key.clone();
        client.kill().await.unwrap();
        client =
            Ably::connect(scene.url(), Format::Json, &[("key", &key), ("resume", &secret)]).await.unwrap();
        client.set_serial(0);
        assert_eq!(client.say("c", "n", "first").await.unwrap(), first);
        let again = client.publish("c", vec![text("n", "second"), text("n", "third")]).await.unwrap();
        assert_eq!(client.acknowledged(again).await.unwrap(), serials);
        let mut reader = with_key(scene.url(), &key, Format::Msgpack).await;
        let attach = Frame {
            params: Some([("rewind".to_owned(), "100".to_owned())].into()),
            ..Frame::of_channel(Action::Attach, "c")
        };
        reader.attach_with(attach).await.unwrap();
        let messages = reader.messages("c", 3).await.unwrap();
        assert_eq!(messages.iter().map(text_of).collect::<Vec<_>>(), ["first", "second", "third"]);
        assert!(reader.so_far().await.unwrap().iter().all(|frame| frame.action != Action::Message));
        scene.crash_and_restart().await;
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_key_is_valid_for_its_key_only_and_not_after_a_close() {
    let scene = Scene::start().await;
    let (own, other) =
        (key(&scene.admin, json!({ "*": ["*"] })).await, key(&scene.admin, json!({ "*": ["*"] })).await);
    let client = with_key(scene.url(), &own, Format::Json).await;
    let (id, secret) = (client.connection_id.clone(), client.connection_key.clone());
    client.close().await.unwrap();
    let forged: Vec<String> = vec![
        secret.clone(),
        format!("{id}!"),
        format!("{id}!0.AAAA"),
        secret.replace('!', ""),
        format!("x{secret}"),
        "x".repeat(10_000),
        "\u{1F600}!\u{1F600}.\u{1F600}".into(),
    ];
    for (credential, keys) in [(&own, &forged[..]), (&other, &forged[..1])] {
        for forged in keys {
            for parameter in ["resume", "recover"] {
                let query = [("key", &**credential), (parameter, &**forged)];
                let mut client = Ably::open(scene.url(), Format::Json, &query).await.unwrap();
                let connected = client.connected().await.unwrap();
                let code = connected.error.map(|error| error.code);
                assert!(matches!(code, Some(80008 | 80018)), "{parameter} {forged:.60}: {code:?}");
                assert_ne!(client.connection_id, id, "{parameter} {forged:.60}");
            }
        }
    }
    scene.ends_well().await;
}

/// The client reads nothing while a backlog that exceeds every buffer is sent to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_backlog_delays_no_frame_about_another_channel() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut publisher = with_key(scene.url(), &key, Format::Msgpack).await;
    let data = "x".repeat(512 * 1024);
    for n in 0..48 {
        publisher.say("long", &n.to_string(), &data).await.unwrap();
    }
    publisher.attach("other").await.unwrap();
    let mut client = with_key(scene.url(), &key, Format::Msgpack).await;
    let rewound = |name: &'static str| Frame {
        params: Some([("rewind".to_owned(), "2m".to_owned())].into()),
        ..Frame::of_channel(Action::Attach, name)
    };
    client.send(&rewound("long")).await.unwrap();
    client.publish("other", vec![text("n", "not delayed")]).await.unwrap();
    assert_eq!(text_of(&publisher.messages("other", 1).await.unwrap()[0]), "not delayed");
    client.send(&rewound("other")).await.unwrap();
    client.present("other", PresenceAction::Enter, Some("ann"), None).await.unwrap();
    publisher.wait_on(Action::Presence, "other").await.unwrap();

    // A repeated ATTACH and a DETACH of the channel wait for it, or end it.
    let backlog = client.messages("long", 48).await.unwrap();
    let names = backlog.iter().map(|message| message.name.as_deref().unwrap().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), (0..48).map(|n| n.to_string()).collect::<Vec<_>>());
    client.send(&Frame::of_channel(Action::Detach, "long")).await.unwrap();
    client.wait_on(Action::Detached, "long").await.unwrap();
    client.send(&rewound("long")).await.unwrap();
    client.send(&Frame::of_channel(Action::Detach, "long")).await.unwrap();
    client.wait_on(Action::Detached, "long").await.unwrap();
    client.attach("long").await.unwrap();
    client.so_far().await.unwrap();
    publisher.say("long", "live", "").await.unwrap();
    assert_eq!(client.messages("long", 1).await.unwrap()[0].name.as_deref(), Some("live"));
    scene.ends_well().await;
}
