//! Rooms and channels without permission, forged senders, and secrets in logs.

use parlor_testkit::ably::{Ably, json as json_message, object_of, text_of};
use parlor_wire::ably::frames::{Action, Format, Frame, flags};
use parlor_wire::ably::presence::PresenceAction;
use serde_json::json;

use super::{chat, connect, key, project, token, with_key};
use crate::scene::{Scene, contents, following, heard, make_key, so_far};

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_invisible_to_everyone_but_its_members() {
    let scene = Scene::start().await;
    let (ann, eve) = (scene.person("ann").await, scene.person("eve").await);
    let room = ann.make_room("secret", &[]).await.unwrap();
    let channel = project(&room);
    let mut inside = connect(&ann, Format::Json).await;
    inside.attach(&channel).await.unwrap();
    let narrow = key(&scene.admin, json!({ "chat:*": ["*"] })).await;
    for mut outside in
        [connect(&eve, Format::Json).await, with_key(scene.url(), &narrow, Format::Msgpack).await]
    {
        for name in [&channel, "jaibber:project:unknown"] {
            outside.send(&Frame::of_channel(Action::Attach, name)).await.unwrap();
            let refused = outside.wait_on(Action::Error, name).await.unwrap().error.unwrap();
            assert!([40160, 40400].contains(&refused.code), "{refused:?}");
            let project = name.strip_prefix("jaibber:project:").unwrap();
            let data = chat(&eve, "eve", project, "from outside", "m1");
            let serial = outside.publish(name, vec![json_message("message", &data)]).await.unwrap();
            let refused = outside.refused(serial).await.unwrap();
            assert!([40160, 40400].contains(&refused.code), "{refused:?}");
            let client = Some(eve.user_id());
            let serial =
                outside.send_presence(name, PresenceAction::Enter, client, Some("{}")).await.unwrap();
            outside.refused(serial).await.unwrap();
        }
    }
    let data = chat(&ann, "ann", &room, "inside", "m2");
    inside.say_json(&channel, "message", &data).await.unwrap();
    assert_eq!(inside.messages(&channel, 1).await.unwrap().len(), 1);
    assert_eq!(contents(&ann.history(&room).await.unwrap()), ["inside"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_receives_nothing_more() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let mut ably = connect(&bob, Format::Json).await;
    ably.attach(&channel).await.unwrap();
    ann.post_message(&room, "before").await.unwrap();
    assert_eq!(object_of(&ably.messages(&channel, 1).await.unwrap()[0])["text"], "before");
    let path = format!("/api/rooms/{room}/members/{}", bob.user_id());
    ann.delete(&path).await.unwrap().data().unwrap();
    ann.post_message(&room, "after").await.unwrap();
    let frames = ably.so_far().await.unwrap();
    assert!(frames.iter().all(|frame| frame.action != Action::Message), "{frames:?}");
    ably.send(&Frame::of_channel(Action::Attach, &channel)).await.unwrap();
    assert_eq!(ably.wait_on(Action::Error, &channel).await.unwrap().error.unwrap().code, 40160);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_senders_are_refused_or_replaced() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let mut ably = connect(&ann, Format::Json).await;
    ably.attach(&channel).await.unwrap();
    let mut page = following(&bob, &room).await;

    let mut forged = vec![chat(&bob, "bob", &room, "as bob", "f1")];
    let mut of_bobs_agent = chat(&ann, "ann", &room, "as an agent", "f2");
    of_bobs_agent["agentName"] = json!("unknown agent");
    of_bobs_agent["isAgentMessage"] = json!(true);
    of_bobs_agent["type"] = json!("response");
    forged.push(of_bobs_agent);
    forged.push(chat(&ann, "ann", "another-room", "in another room", "f3"));
    for data in forged {
        let serial = ably.publish(&channel, vec![json_message("message", &data)]).await.unwrap();
        ably.refused(serial).await.unwrap();
    }
    let mut other_client = json_message("message", &chat(&ann, "ann", &room, "as another client", "f4"));
    other_client.client_id = Some(bob.user_id().to_owned().into());
    let serial = ably.publish(&channel, vec![other_client]).await.unwrap();
    assert_eq!(ably.refused(serial).await.unwrap().code, 40012);

    // The hub ignores the depth and chain that a person's message claims.
    let mut deep = chat(&ann, "bob", &room, "own", "f5");
    deep["responseDepth"] = json!(2);
    deep["respondingChain"] = json!(["somebody"]);
    ably.say_json(&channel, "message", &deep).await.unwrap();
    let shown = heard(&mut page).await;
    assert_eq!((&shown["content"], &shown["senderName"]), (&json!("own"), &json!("ann")));
    let data = object_of(&ably.messages(&channel, 1).await.unwrap()[0]);
    assert_eq!((&data["from"], &data["fromUsername"]), (&json!(ann.user_id()), &json!("ann")));
    assert!(data.get("isAgentMessage").is_none(), "{data}");
    assert_eq!(contents(&ann.history(&room).await.unwrap()), ["own"]);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_name_their_own_user_in_data_that_the_hub_can_read() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let mut ably = connect(&bob, Format::Json).await;
    let (own, other) = (bob.user_id(), ann.user_id());
    for channel in [&*project(&room), "jaibber:presence"] {
        let mut enter = async |data: String| {
            let serial =
                ably.send_presence(channel, PresenceAction::Enter, Some(own), Some(&data)).await.unwrap();
            ably.outcome(serial).await.unwrap().map_err(|error| error.code)
        };
        let forged = json!({ "userId": other, "username": "ann" }).to_string();
        assert_eq!(enter(forged).await, Err(40012), "{channel}");
        let repeated = format!(r#"{{"userId":"{own}","username":"bob","userId":"{other}"}}"#);
        assert_eq!(enter(repeated).await, Err(40013), "{channel}");
        assert_eq!(enter("ann".to_owned()).await, Err(40013), "{channel}");
        assert!(enter(json!({ "userId": own, "username": "bob" }).to_string()).await.is_ok(), "{channel}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_user_permits_no_publication_on_paths() {
    let scene = Scene::start().await;
    let ann = scene.person("ann").await;
    let mut ably = connect(&ann, Format::Json).await;
    for channel in ["jaibber:presence", "jaibber:notes", "chat"] {
        let data = json!({ "text": "from a user" });
        let serial = ably.publish(channel, vec![json_message("message", &data)]).await.unwrap();
        assert_eq!(ably.refused(serial).await.unwrap().code, 40160, "{channel}");
    }
    ably.attach("jaibber:presence").await.unwrap();
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_ably_clients_are_in_no_log() {
    let mut scene = Scene::with(&[("PARLOR_LOG_LEVEL", "trace")]).await;
    let ann = scene.person("ann").await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let token = token(&ann).await;
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    client.say("canary-channel", "n", "canary in a message").await.unwrap();
    client.attach("canary-channel").await.unwrap();
    client.authorize(&token).await.unwrap();
    let secret = client.connection_key.clone();
    client.kill().await.unwrap();
    let resumed =
        Ably::connect(scene.url(), Format::Json, &[("key", &key), ("resume", &secret)]).await.unwrap();
    let newer = resumed.connection_key.clone();
    let wrong = format!("{}wrong-canary", &key[..key.len() - 4]);
    let mut refused = Ably::open(scene.url(), Format::Json, &[("key", &wrong)]).await.unwrap();
    assert_eq!(refused.error().await.unwrap().code, 40101);
    let mut person = connect(&ann, Format::Msgpack).await;
    person.send_bytes(vec![0xc1]).await.unwrap();
    drop((resumed, person));
    scene.hub.stop(std::time::Duration::from_secs(10)).await.unwrap();
    let log = scene.hub.log();
    let secret_part = |text: &str| text.rsplit_once([':', '.', '!']).unwrap().1.to_owned();
    for canary in [
        secret_part(&key),
        secret_part(&token),
        secret_part(&secret),
        secret_part(&newer),
        "wrong-canary".into(),
        "canary in a message".into(),
    ] {
        let line = log.lines().find(|line| line.contains(&canary));
        assert_eq!(line, None, "{canary} is in the log");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn similar_channel_names_share_nothing() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    let mut client = with_key(scene.url(), &key, Format::Json).await;
    let names =
        ["a/b", "a%2Fb", "a%2fb", "a*", "a%2A", "a", "a\u{0}", "a%00", "room/x", "ably/a", "../a", "a/../a"];
    for name in names {
        client.attach(name).await.unwrap();
    }
    for name in names {
        client.say(name, "n", name).await.unwrap();
    }
    for name in names {
        let messages = client.messages(name, 1).await.unwrap();
        assert_eq!(text_of(&messages[0]), name);
    }
    let rest = client.so_far().await.unwrap();
    assert!(rest.iter().all(|frame| frame.action != Action::Message), "{rest:?}");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_member_gets_an_error_in_every_mode() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let modes = [flags::SUBSCRIBE, flags::PRESENCE_SUBSCRIBE, flags::PRESENCE, flags::PUBLISH];
    let mut clients = Vec::new();
    for modes in modes {
        let mut client = connect(&bob, Format::Json).await;
        let attach = |name: &str| {
            let name = name.to_owned();
            Frame { flags: Some(modes), channel: Some(name.into()), ..Frame::new(Action::Attach) }
        };
        client.attach_with(attach(&channel)).await.unwrap();
        client.attach_with(attach(&format!("[?a=1]{channel}"))).await.unwrap();
        clients.push(client);
    }
    let path = format!("/api/rooms/{room}/members/{}", bob.user_id());
    ann.delete(&path).await.unwrap().data().unwrap();
    for mut client in clients {
        for name in [channel.clone(), format!("[?a=1]{channel}")] {
            assert_eq!(client.wait_on(Action::Error, &name).await.unwrap().error.unwrap().code, 40160);
        }
        client
            .send(&Frame { flags: Some(flags::PRESENCE), ..Frame::of_channel(Action::Attach, &channel) })
            .await
            .unwrap();
        assert_eq!(client.wait_on(Action::Error, &channel).await.unwrap().error.unwrap().code, 40160);
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scopes_of_an_api_key_limit_its_token() {
    let scene = Scene::start().await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let channel = project(&room);
    let mut page = following(&bob, &room).await;
    let signal = |kind: &str, id: &str| {
        let mut data = chat(&ann, "ann", &room, "", id);
        data["type"] = json!(kind);
        vec![json_message("message", &data)]
    };
    for (scopes, is_permitted) in [(&["read"][..], false), (&["read", "write"][..], true)] {
        let (_, key) = make_key(&ann, scopes).await;
        let mut client = connect(&ann.with_token(&key), Format::Json).await;
        client.attach(&channel).await.unwrap();
        for kind in ["typing", "deregister"] {
            let serial =
                client.publish(&channel, signal(kind, &format!("{kind}-{}", scopes.len()))).await.unwrap();
            let outcome = client.outcome(serial).await.unwrap().map(drop).map_err(|error| error.code);
            assert_eq!(outcome, if is_permitted { Ok(()) } else { Err(40160) }, "{kind} with {scopes:?}");
        }
        let typing = so_far(&mut page).await.into_iter().any(|frame| frame["type"] == "server:typing");
        assert_eq!(typing, is_permitted);
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_ends_an_own_agent_with_the_scope_for_agents() {
    let scene = Scene::with(&[("PARLOR_MEMBERS_ADD_AGENTS", "on")]).await;
    let (ann, bob) = (scene.person("ann").await, scene.person("bob").await);
    let room = ann.make_room("kitchen", &[&bob]).await.unwrap();
    let body = json!({ "name": "Coder", "type": "claude-code" });
    let agent = bob.post("/api/agents", body).await.unwrap().data().unwrap();
    let member = json!({ "memberId": agent["id"], "memberType": "agent" });
    bob.post(&format!("/api/rooms/{room}/members"), member).await.unwrap().data().unwrap();
    let channel = project(&room);
    let mut end = chat(&bob, "bob", &room, "", "end");
    (end["type"], end["agentName"]) = (json!("deregister"), json!("Coder"));
    for (scopes, is_permitted) in [(&["read", "write"][..], false), (&["read", "write", "agents"][..], true)]
    {
        let (_, key) = make_key(&bob, scopes).await;
        let mut client = connect(&bob.with_token(&key), Format::Json).await;
        let serial = client.publish(&channel, vec![json_message("message", &end)]).await.unwrap();
        let outcome = client.outcome(serial).await.unwrap().map(drop).map_err(|error| error.code);
        assert_eq!(outcome, if is_permitted { Ok(()) } else { Err(40160) }, "{scopes:?}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_name_of_a_channel_has_its_own_modes_and_backlog() {
    let scene = Scene::start().await;
    let key = key(&scene.admin, json!({ "*": ["*"] })).await;
    for query in [vec![("key", &*key), ("echo", "true")], vec![("key", &*key), ("echo", "false")]] {
        let channel = format!("chat-{}", query[1].1);
        let mut speaker = with_key(scene.url(), &key, Format::Json).await;
        let mut client = Ably::connect(scene.url(), Format::Msgpack, &query).await.unwrap();
        let (messages, members) = (format!("[?a=1]{channel}"), format!("[?a=2]{channel}"));
        let attach = |name: &str, flags| {
            let name = name.to_owned();
            Frame { flags: Some(flags), channel: Some(name.into()), ..Frame::new(Action::Attach) }
        };
        client.attach_with(attach(&channel, flags::SUBSCRIBE)).await.unwrap();
        client.attach_with(attach(&messages, flags::SUBSCRIBE)).await.unwrap();
        client.attach_with(attach(&members, flags::PRESENCE_SUBSCRIBE)).await.unwrap();
        speaker.say(&channel, "n", "first").await.unwrap();
        speaker.present(&channel, PresenceAction::Enter, Some("ann"), None).await.unwrap();
        let rewound = format!("[?rewind=1]{channel}");
        client.attach_with(attach(&rewound, flags::SUBSCRIBE)).await.unwrap();
        speaker.say(&channel, "n", "second").await.unwrap();
        for name in [&messages, &channel, &rewound] {
            let heard = client.messages(name, 2).await.unwrap();
            assert_eq!(heard.iter().map(text_of).collect::<Vec<_>>(), ["first", "second"], "{name}");
        }
        client.wait_on(Action::Presence, &members).await.unwrap();
        client.wait_on(Action::Sync, &members).await.unwrap();
        client.send(&Frame::of_channel(Action::Detach, &rewound)).await.unwrap();
        client.wait_on(Action::Detached, &rewound).await.unwrap();
        speaker.say(&channel, "n", "third").await.unwrap();
        assert_eq!(text_of(&client.messages(&messages, 1).await.unwrap()[0]), "third");
        assert_eq!(text_of(&client.messages(&channel, 1).await.unwrap()[0]), "third");
        let rest = client.so_far().await.unwrap();
        assert!(rest.is_empty(), "{rest:?}");
    }
    scene.ends_well().await;
}
