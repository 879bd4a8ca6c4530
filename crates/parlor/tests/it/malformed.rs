//! Malformed input on sockets.
//!
//! The hub answers with the documented error or close code, never panics, and keeps serving other clients.

use parlor_testkit::agentim::{Client, message};
use parlor_testkit::broker::Broker;
use parlor_testkit::rest::RestClient;
use parlor_testkit::seed;
use parlor_testkit::socket::{NotUpgraded, Socket, SocketEvent, TEST_TIMEOUT, TEXT, masked_frame};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;

use crate::scene::{Scene, following, heard, next, so_far};

const CONTINUATION: u8 = 0x0;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const FINAL_BIT: u8 = 0x80;
const PING_FRAME: &[u8] = br#"{"type":"client:ping","ts":1,"x":"\u00e9"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn malformed_websocket_frames_close_with_the_code_of_the_error() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut witness = following(&scene.admin, &room).await;
    let mut unmasked = vec![0x80 | TEXT, PING_FRAME.len() as u8];
    unmasked.extend(PING_FRAME);
    let with_bit = |bit: u8| {
        let mut frame = masked_frame(TEXT, PING_FRAME);
        frame[0] |= bit;
        frame
    };
    let declared = |length: u64| {
        let mut frame = vec![0x80 | TEXT, 0x80 | 127];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 64]);
        frame
    };
    let cases: Vec<(&str, Vec<u8>, &[u16])> = vec![
        ("bad UTF-8", masked_frame(TEXT, b"{\"type\":\"\xff\xfe\"}"), &[1007]),
        ("an encoded surrogate", masked_frame(TEXT, b"{\"type\":\"\xed\xa0\x80\"}"), &[1007]),
        ("a truncated character at the end", masked_frame(TEXT, b"{\"type\":\"\xc3"), &[1007]),
        ("not masked", unmasked, &[1002]),
        ("reserved bit 1", with_bit(0x40), &[1002]),
        ("reserved bit 2", with_bit(0x20), &[1002]),
        ("reserved bit 3", with_bit(0x10), &[1002]),
        ("reserved opcode", masked_frame(0x3, b"x"), &[1002]),
        ("reserved control opcode", masked_frame(0xB, b"x"), &[1002]),
        ("a long ping", masked_frame(PING, &[b'x'; 126]), &[1002]),
        ("a fragmented ping", not_final(PING, b"x"), &[1002]),
        ("a continuation without a first frame", masked_frame(CONTINUATION, b"x"), &[1002]),
        ("a message within a message", [not_final(TEXT, b"x"), masked_frame(TEXT, b"x")].concat(), &[1002]),
        ("a close of one byte", masked_frame(CLOSE, b"x"), &[1002]),
        ("a close with a reserved code", masked_frame(CLOSE, &1005u16.to_be_bytes()), &[1002]),
        ("a close reason with bad UTF-8", masked_frame(CLOSE, b"\x03\xe8\xff"), &[1002, 1007]),
        ("a declared length of 4 EiB", declared(1 << 62), &[1009]),
        ("a declared length with the highest bit set", declared(u64::MAX), &[1002, 1009]),
    ];
    for (n, (case, bytes, codes)) in cases.into_iter().enumerate() {
        let mut client = Client::connect(&scene.admin).await.unwrap();
        client.send_bytes(&bytes).await.unwrap();
        let code = client.closed(TEST_TIMEOUT).await.unwrap();
        assert!(codes.contains(&code), "{case}: closed with {code}, not {codes:?}");
        assert_still_serves(&mut witness, &room, n).await;
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fragmented_message_is_accepted_and_an_oversized_one_is_refused() {
    let scene = Scene::start().await;
    let mut client = Client::connect(&scene.admin).await.unwrap();
    let text = "{\"type\":\"client:ping\",\"ts\":5,\"x\":\"é\"}".as_bytes();
    let middle = text.iter().position(|byte| *byte == 0xc3).unwrap() + 1;
    let fragments = [
        not_final(TEXT, &text[..middle]),
        masked_frame(PING, b"between the parts"),
        not_final(CONTINUATION, b""),
        masked_frame(CONTINUATION, &text[middle..]),
    ];
    for byte in fragments.concat() {
        client.send_bytes(&[byte]).await.unwrap();
    }
    assert_eq!(next(&mut client, "server:pong").await["ts"], 5);

    client.send_message(Message::binary(PING_FRAME.to_vec())).await.unwrap();
    assert_eq!(next(&mut client, "server:error").await["code"], "INVALID_MESSAGE", "binary");
    client.send_bytes(&masked_frame(BINARY, b"\xff\x00")).await.unwrap();
    assert_eq!(next(&mut client, "server:error").await["code"], "INVALID_MESSAGE", "binary");

    // A message above the limit but small enough to be skipped is refused, in one frame or in fragments; the
    // connection stays open.
    let large = "x".repeat(100_000);
    client.send_message(Message::text(large.clone())).await.unwrap();
    assert_eq!(next(&mut client, "server:error").await["code"], "MESSAGE_TOO_LARGE");
    let fragments: Vec<u8> = (0..10)
        .map(|n| not_final(if n == 0 { TEXT } else { CONTINUATION }, &large.as_bytes()[..10_000]))
        .chain([masked_frame(CONTINUATION, b"")])
        .flatten()
        .collect();
    client.send_bytes(&fragments).await.unwrap();
    assert_eq!(next(&mut client, "server:error").await["code"], "MESSAGE_TOO_LARGE");
    so_far(&mut client).await;

    // A message too large to be skipped ends the connection, after an error frame.
    for size in [2_000_000, 20_000_000] {
        let mut client = Client::connect(&scene.admin).await.unwrap();
        // Write the whole frame: a reset during the write could discard the hub's error frame.
        client.send_bytes(&masked_frame(TEXT, &vec![b'x'; size])).await.unwrap();
        let error = next(&mut client, "server:error").await;
        assert_eq!(error["code"], "MESSAGE_TOO_LARGE", "{size} bytes");
        assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1009, "{size} bytes");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_json_and_invalid_messages_are_refused_and_the_connection_stays_open() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = following(&scene.admin, &room).await;
    so_far(&mut client).await;
    let send = |rest: &str| format!(r#"{{"type":"client:send_message","roomId":"{room}",{rest}}}"#);
    let invalid_json = [
        "",
        " ",
        "{",
        "}",
        "nul",
        "'x'",
        "{}{}",
        "\u{0}",
        "{\"type\":}",
        "[1,]",
        "NaN",
        "1e999",
        "\u{feff}{}",
        "{\"type\":\"client:ping\",\"ts\":01}",
        "{\"a\":\"\u{1}\"}",
    ];
    for text in invalid_json {
        assert_error(&mut client, text, "INVALID_JSON").await;
    }
    for escape in [r#""\ud800""#, r#""\udc00x""#, r#""\ud800\ud800""#, r#""\x41""#, r#""\u12""#] {
        assert_error(&mut client, &send(&format!(r#""content":{escape}"#)), "INVALID_JSON").await;
    }
    let invalid_messages = [
        "null",
        "true",
        "7",
        "\"client:ping\"",
        "[]",
        "{}",
        r#"{"type":null}"#,
        r#"{"type":7}"#,
        r#"{"type":["client:ping"]}"#,
        r#"{"type":""}"#,
        r#"{"type":"client:"}"#,
        r#"{"type":"CLIENT:PING","ts":1}"#,
        r#"{"type":"server:pong","ts":1}"#,
        r#"{"type":"gateway:ping","ts":1}"#,
        r#"{"type":"client:ping"}"#,
        r#"{"type":"client:ping","ts":"1"}"#,
        r#"{"type":"client:auth"}"#,
        r#"{"type":"client:auth","token":5}"#,
        r#"{"type":"client:join_room"}"#,
        r#"{"type":"client:join_room","roomId":{}}"#,
        r#"{"type":"client:typing","roomId":null}"#,
        r#"{"type":"client:leave_room","roomId":[]}"#,
        r#"{"type":"client:ping","ts":1,"ts":2}"#,
        r#"{"type":"client:ping","type":"client:ping","ts":1}"#,
    ];
    for text in invalid_messages {
        assert_error(&mut client, text, "INVALID_MESSAGE").await;
    }
    for rest in [
        r#""content":5"#,
        r#""content":null"#,
        r#""content":["a"]"#,
        r#""text":"a""#,
        r#""content":"a","mentions":"b""#,
        r#""content":"a","mentions":[1]"#,
        r#""content":"a","replyToId":1"#,
        r#""content":"a","attachmentIds":{}"#,
        r#""content":"a","clientMessageId":1"#,
        r#""content":"a","content":"b""#,
        r#""content":"a","c\u006fntent":"b""#,
    ] {
        assert_error(&mut client, &send(rest), "INVALID_MESSAGE").await;
    }
    // Nesting deeper than any stack is refused while it is scanned, before it is parsed.
    let deep = format!("{{\"type\":{}", "[".repeat(60_000));
    assert_error(&mut client, &deep, "JSON_TOO_DEEP").await;
    assert!(scene.admin.history(&room).await.unwrap().is_empty());

    // Unusual but valid text is stored and published unchanged.
    let unusual = "\u{0}\u{7f}\u{202e}\u{fffd}\u{10ffff}e\u{301}\r\n<script>&amp;'\"\\";
    client.say_and_wait(&room, unusual, "odd").await.unwrap();
    assert_eq!(heard(&mut client).await["content"], unusual);
    assert_eq!(scene.admin.history(&room).await.unwrap()[0]["content"], unusual);
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn randomly_corrupted_frames_do_not_affect_other_clients() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut witness = following(&scene.admin, &room).await;
    let mut rng = seed::rng();
    let valid = message(&room, "a good message", "m").to_string();
    for round in 0..150 {
        let (mut client, protocol) = match rng.below(2) {
            0 => (Client::connect(&scene.admin).await.unwrap().0, "client"),
            _ => (Socket::open(scene.url(), "/ws/broker", &[]).await.unwrap(), "broker"),
        };
        let mut bytes = masked_frame(TEXT, valid.as_bytes());
        for _ in 0..=rng.below(4) {
            let index = rng.below(bytes.len() as u64) as usize;
            bytes[index] ^= 1 << rng.below(8);
        }
        bytes.truncate(bytes.len() - (rng.below(4) * rng.below(20)) as usize);
        client.send_bytes(&bytes).await.unwrap();
        if rng.below(2) == 0 {
            drop(client);
        } else if let Ok(SocketEvent::Frame(frame)) = client.next(std::time::Duration::from_millis(20)).await
        {
            assert!(frame["type"].is_string(), "{protocol}: {frame}");
        }
        if round % 10 == 0 {
            scene.assert_never_panicked();
            assert_still_serves(&mut witness, &room, round).await;
        }
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_in_mid_frame_stores_no_message() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut witness = following(&scene.admin, &room).await;
    for n in 0..30 {
        let client = Client::connect(&scene.admin).await.unwrap();
        client.0.cut_in_mid_frame(&message(&room, &format!("never {n}"), "m")).await.unwrap();
    }
    assert_still_serves(&mut witness, &room, 0).await;
    assert_eq!(scene.admin.history(&room).await.unwrap().len(), 1, "an incomplete message is not stored");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_pings_is_answered_or_disconnected_while_others_are_served() {
    let scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut witness = following(&scene.admin, &room).await;
    let mut reader = Client::connect(&scene.admin).await.unwrap();
    let flood = masked_frame(PING, &[b'x'; 125]).repeat(2_000);
    reader.send_bytes(&flood).await.unwrap();
    so_far(&mut reader).await;

    // A client that floods and does not read fills its own outbox and is disconnected.
    let mut not_reading = Client::connect(&scene.admin).await.unwrap();
    let disconnected = async { while not_reading.send_bytes(&flood).await.is_ok() {} };
    let (disconnected, ()) = tokio::join!(
        tokio::time::timeout(TEST_TIMEOUT, disconnected),
        assert_still_serves(&mut witness, &room, 1)
    );
    disconnected.expect("a flooding client that does not read is disconnected");
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_broker_refuses_malformed_frames() {
    let scene = Scene::start().await;
    let cases: [(Vec<u8>, u16); 4] = [
        (masked_frame(TEXT, b"\xff"), 1007),
        (masked_frame(0x3, b"x"), 1002),
        (masked_frame(PING, &[0; 126]), 1002),
        (masked_frame(TEXT, &vec![b'x'; 1_100_000]), 1009),
    ];
    for (bytes, code) in cases {
        let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
        broker.send_bytes(&bytes).await.unwrap();
        assert_eq!(broker.closed(TEST_TIMEOUT).await.unwrap(), code);
    }
    let mut broker = Broker::connect(scene.url(), scene.admin.token()).await.unwrap();
    broker.send_message(Message::binary(b"{}".to_vec())).await.unwrap();
    assert_eq!(broker.frame(TEST_TIMEOUT).await.unwrap()["error"], "Invalid JSON");
    let invalid = [
        json!({ "type": "msg.route", "from": 1, "path": "a/b" }),
        json!({ "type": "msg.route", "from": "x", "path": "a\u{0}b" }),
        json!({ "type": "msg.route", "from": "x", "path": "a/".repeat(40) }),
        json!({ "type": "msg.route", "from": "x", "path": "a", "payload": [] }),
        json!({ "type": "msg.route", "from": "", "path": "a" }),
        json!({ "type": "agent.create", "id": "a", "config": { "subscriptions": ["**/a/**/b/**"] } }),
        json!({ "type": "agent.create", "id": "a/../b" }),
        json!({ "type": "msg.listen", "agentId": ["a"] }),
    ];
    for frame in invalid {
        let reply = broker.ask(frame.clone()).await.unwrap();
        let kind = format!("{}.error", frame["type"].as_str().unwrap());
        assert_eq!(reply["type"], kind, "{frame}");
        assert!(reply["error"].as_str().is_some_and(|sentence| !sentence.is_empty()), "{reply}");
    }
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_handshake_is_refused() {
    let scene = Scene::start().await;
    let plain = RestClient::outsider(scene.url()).get("/ws/client").await.unwrap();
    assert_eq!(plain.status, 426);
    for (header, value) in [("sec-websocket-version", "12"), ("upgrade", "h2c"), ("connection", "close")] {
        let refused = Socket::open(scene.url(), "/ws/client", &[(header, value)]).await.err().unwrap();
        let NotUpgraded(status) = refused.downcast().unwrap();
        assert_eq!(status, 426, "{header}: {value}");
    }
    let address = scene.url().strip_prefix("http://").unwrap();
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n"]
    {
        let mut tcp = tokio::net::TcpStream::connect(address).await.unwrap();
        tcp.write_all(garbage).await.unwrap();
        let mut answer = Vec::new();
        tcp.shutdown().await.unwrap();
        let _ = tokio::time::timeout(TEST_TIMEOUT, tcp.read_to_end(&mut answer))
            .await
            .expect("the hub closes the connection before the timeout");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 400"), "{text}");
    }
    scene.ends_well().await;
}

fn not_final(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = masked_frame(opcode, payload);
    frame[0] &= !FINAL_BIT;
    frame
}

/// Sends a text frame and asserts that the hub refuses it with this error code.
async fn assert_error(client: &mut Client, text: &str, code: &str) {
    client.send_message(Message::text(text)).await.unwrap();
    // Earlier events of the room may still arrive before the error.
    let answer = client.wait_for(TEST_TIMEOUT, |frame| frame["type"] == "server:error").await.unwrap();
    assert_eq!(answer["code"], code, "{text:.100}");
}

/// Asserts that another client can still send and receive messages.
async fn assert_still_serves(witness: &mut Client, room: &str, n: usize) {
    let id = format!("witness {n}");
    let ack = witness.say_and_wait(room, "still here", &id).await.unwrap();
    let published =
        witness.wait_for(TEST_TIMEOUT, |frame| frame["message"]["clientMessageId"] == *id).await.unwrap();
    assert_eq!(published["message"]["id"], ack.message_id);
}
