//! Frames of the Ably protocol: recorded ones in both directions, and properties of random and damaged ones.

use parlor_model::{
    AgentId, Answer, MessageId, Ordinal, Origin, Payload, ReplyPart, Sender, Signal, SignalStamp,
};
use parlor_model::{Attachment, Destination, Epoch, File, MediaType, MessageKind, Path, RoomId, Seq, Time};
use parlor_model::{UploadId, UserId};
use parlor_wire::ably::data::{Data, Json};
use parlor_wire::ably::egress;
use parlor_wire::ably::frames::{Action, Format, Frame, Message, PresenceMessage};
use parlor_wire::ably::jaibber::{ChatMessage, MessageType, ProjectMember, room_frame, signal_frame};
use parlor_wire::ably::presence::PresenceAction;
use proptest::prelude::*;
use serde_json::Value;

const RECORDED: &str = include_str!("fixtures/ably-recorded.txt");

/// Direction, name of the action and JSON of each recorded frame.
fn recorded() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    RECORDED.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().expect("a line has three parts");
        (part(), part(), part())
    })
}

fn json(frame: &Frame<'_>) -> String {
    String::from_utf8(Format::Json.encode(frame)).unwrap()
}

/// Removes `size` of messages, which the hub ignores.
fn without_size(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for message in value.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        message.as_object_mut().unwrap().remove("size");
    }
    value
}

#[test]
fn recorded_frames_are_decoded_and_encoded_without_loss() {
    let (mut from_hub, mut from_client) = (0, 0);
    for (direction, kind, text) in recorded() {
        let frame = Frame::decode(text.as_bytes(), Format::Json).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        if direction == "S>C" && kind != "SMALLEST" {
            assert_eq!(json(&frame), text, "the hub writes the same bytes");
            from_hub += 1;
        } else {
            let encoded: Value = serde_json::from_str(&json(&frame)).unwrap();
            assert_eq!(encoded, without_size(text));
            from_client += 1;
        }
        let packed = Format::Msgpack.encode(&frame);
        assert_eq!(Frame::decode(&packed, Format::Msgpack).unwrap(), frame, "{text}");
    }
    assert!(from_hub > 50 && from_client > 40, "{from_hub} {from_client}");
}

#[test]
fn recorded_chat_messages_keep_every_field() {
    let mut count = 0;
    for (_, _, text) in recorded() {
        let frame = Frame::decode(text.as_bytes(), Format::Json).unwrap();
        for message in frame.messages.iter().flatten() {
            let Some(Data::Text(data)) = &message.data else { continue };
            let Ok(chat) = ChatMessage::parse(data) else { continue };
            let (encoded, given): (Value, Value) =
                (serde_json::from_str(&chat.text()).unwrap(), serde_json::from_str(data).unwrap());
            assert_eq!(encoded, given);
            count += 1;
        }
        for member in frame.presence.iter().flatten() {
            let Some(Data::Text(data)) = &member.data else { continue };
            let Some(parsed) = ProjectMember::parse(data) else { continue };
            assert_eq!(parsed.all_agents().len(), usize::from(parsed.is_agent), "{data}");
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn unknown_fields_of_chat_messages_pass_unchanged() {
    let text = r#"{"from":"u","projectId":"p","messageId":"m","type":"message","executionMode":"auto","n":12345678901234567890.10}"#;
    let chat = ChatMessage::parse(text).unwrap();
    assert_eq!(chat.other.text(), r#"{"executionMode":"auto","n":12345678901234567890.10}"#);
    assert!(chat.text().ends_with(r#""type":"message","executionMode":"auto","n":12345678901234567890.10}"#));
    for bad in ["", "[]", "{}", r#"{"type":"x"}"#, r#"{"type":"message","type":"typing"}"#] {
        assert_eq!(ChatMessage::parse(bad).unwrap_err().code, 40013, "{bad}");
    }
}

fn room_message() -> parlor_model::Message {
    let file = File { name: "cat.png".into(), media: MediaType::Png, size: 9 };
    parlor_model::Message {
        id: MessageId::stored("m"),
        seq: Seq(7),
        at: Time(1_600_000_000_000_005),
        destination: Destination::Room(RoomId::stored("r")),
        sender: Sender::Agent(AgentId::stored("coder")),
        sender_name: "Coder".into(),
        kind: MessageKind::AgentResponse,
        text: "hi".into(),
        mentions: Vec::new(),
        reply_to: Some(MessageId::stored("p")),
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: vec![Attachment { id: UploadId::stored("f1"), file }],
        client_message_id: None,
        command: None,
        payload: None,
        source: "gateway".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
        origin: None,
        answer: None,
    }
}

#[test]
fn a_message_of_a_room_has_all_fields_of_a_chat_message() {
    let origin = Origin {
        connection: "c1".into(),
        client: None,
        id: "c1:4:0".into(),
        fields: Some(Payload(r#"{"executionMode":"plan"}"#.into())),
    };
    let answer = Answer { owner: UserId::stored("u"), depth: 1, chain: vec!["Coder".into()] };
    let message = parlor_model::Message {
        origin: Some(Box::new(origin)),
        answer: Some(Box::new(answer)),
        ..room_message()
    };
    let frame = room_frame(&message, Epoch(31), "jaibber:project:r").unwrap();
    let data = r#"{"from":"u","fromUsername":"Coder","projectId":"r","text":"hi","messageId":"m","responseId":"m","type":"response","agentName":"Coder","isAgentMessage":true,"responseDepth":1,"respondingChain":["coder"],"attachments":[{"id":"f1","filename":"cat.png","mimeType":"image/png","fileSize":9,"blobUrl":"/uploads/f1"}],"parentMessageId":"p","executionMode":"plan"}"#;
    let serial = "0000001f-0000000000000007";
    assert_eq!(
        json(&frame),
        format!(
            r#"{{"action":15,"id":"c1:4","connectionId":"c1","channel":"jaibber:project:r","channelSerial":"{serial}","timestamp":1600000000000,"messages":[{{"id":"c1:4:0","name":"message","data":{},"encoding":"json","clientId":"u","action":0,"serial":"{serial}:000","version":{{"serial":"{serial}:000","timestamp":1600000000000}}}}]}}"#,
            serde_json::to_string(data).unwrap()
        )
    );
    assert_eq!(ChatMessage::parse(data).unwrap().kind, MessageType::Response);
}

/// MESSAGE frame of a part of a reply.
fn part(part: ReplyPart) -> Frame<'static> {
    let signal = Signal::Reply {
        room: RoomId::stored("p"),
        agent: AgentId::stored("coder"),
        agent_name: "Coder".into(),
        owner: UserId::stored("u"),
        connection: Some("c1".into()),
        message: MessageId::stored("reply"),
        part,
    };
    let stamp = SignalStamp { ordinal: Ordinal(7), at: Time(1_600_000_000_000_000) };
    signal_frame(&signal, stamp).unwrap()
}

fn data_of(frame: &Frame<'_>) -> String {
    let messages = frame.messages.as_ref().unwrap();
    let Some(Data::Text(text)) = &messages[0].data else { panic!("no text in {frame:?}") };
    text.to_string()
}

/// The payloads that the SDK published, with shorter ids.
#[test]
fn parts_of_a_reply_have_the_recorded_payloads() {
    let head = r#""from":"u","fromUsername":"Coder","projectId":"p""#;
    let typing = part(ReplyPart::Started);
    assert_eq!(
        data_of(&typing),
        format!(
            r#"{{{head},"text":"","messageId":"hub:7","responseId":"reply","type":"typing","agentName":"Coder"}}"#
        )
    );
    assert_eq!(
        (typing.connection_id.as_deref(), typing.channel.as_deref()),
        (Some("c1"), Some("jaibber:project:p"))
    );
    assert_eq!(
        data_of(&part(ReplyPart::Text("Hello ".into()))),
        format!(r#"{{{head},"text":"Hello ","messageId":"reply","type":"chunk","agentName":"Coder"}}"#)
    );
    assert_eq!(
        data_of(&part(ReplyPart::Failed("Agent error: x".into()))),
        format!(
            r#"{{{head},"text":"Agent error: x","messageId":"reply","type":"error","agentName":"Coder"}}"#
        )
    );
}

#[test]
fn binary_data_is_the_same_for_json_and_msgpack_and_in_the_store() {
    let text =
        br#"{"action":15,"channel":"a","messages":[{"data":"AQL6","encoding":"cipher+aes-256-cbc/base64"}]}"#;
    let frame = Frame::decode(text, Format::Json).unwrap();
    let message = &frame.messages.as_ref().unwrap()[0];
    assert_eq!(message.data, Some(Data::Bytes(vec![1, 2, 250].into())));
    assert_eq!(message.encoding.as_deref(), Some("cipher+aes-256-cbc"));
    let packed = Format::Msgpack.encode(&frame);
    assert!(packed.windows(5).any(|bytes| bytes == [0xc4, 3, 1, 2, 250]), "raw binary");
    assert_eq!(Frame::decode(&packed, Format::Msgpack).unwrap(), frame);
    assert_eq!(json(&frame).as_bytes(), text);
}

#[test]
fn messages_of_other_protocols_are_readable_on_a_path() {
    let on_path = |payload: Option<&str>, source: &str| parlor_model::Message {
        destination: Destination::Path(Path::stored("ably/a")),
        sender: Sender::User(UserId::stored("u")),
        payload: payload.map(|text| Payload(text.into())),
        source: source.into(),
        ..room_message()
    };
    let restored = egress::restore(&on_path(Some(r#"{"data":"forged"}"#), "external"));
    assert_eq!(restored.data, Some(Data::Text(r#"{"data":"forged"}"#.into())));
    assert_eq!(restored.encoding.as_deref(), Some("json"));
    let restored = egress::restore(&on_path(None, "external"));
    assert_eq!((restored.data, restored.encoding), (Some(Data::Text("hi".into())), None));
    let origin = Origin { connection: "c".into(), client: None, id: "x:0".into(), fields: None };
    let stored = parlor_model::Message {
        origin: Some(Box::new(origin)),
        ..on_path(Some(r#"{"id":"x:0","data":"AQ==","encoding":"base64"}"#), "ably")
    };
    let restored = egress::restore(&stored);
    let history = egress::in_history(egress::path_frame(&restored, &stored, Epoch(31), "a"));
    assert_eq!(
        serde_json::to_string(&history).unwrap(),
        r#"[{"id":"x:0","data":"AQ==","encoding":"base64","connectionId":"c","timestamp":1600000000000,"action":0,"serial":"0000001f-0000000000000007:000","version":{"serial":"0000001f-0000000000000007:000","timestamp":1600000000000}}]"#
    );
}

#[test]
fn malformed_frames_are_rejected_without_quoting_them() {
    for (text, code) in [
        ("", 40000),
        ("{}", 40000),
        (r#"{"action":99}"#, 40000),
        (r#"{"action":21,"annotations":[]}"#, 40000),
        (r#"{"action":0,"action":0}"#, 40000),
        (r#"{"action":17,"auth":"secret"}"#, 40000),
        (r#"{"action":15,"messages":[{"data":1}]}"#, 40000),
        (r#"{"action":15,"messages":[{"data":"*","encoding":"base64"}]}"#, 40013),
        (r#"{"action":15,"messages":[{"extras":[1]}]}"#, 40013),
        (r#"{"action":14,"presence":[{"action":9}]}"#, 40000),
    ] {
        let error = Frame::decode(text.as_bytes(), Format::Json).unwrap_err();
        assert_eq!(error.code, code, "{text}");
        assert!(!error.message.contains("secret"));
    }
    let deep =
        format!(r#"{{"action":15,"messages":[{{"extras":{{"a":{}1{}}}}}]}}"#, "[".repeat(40), "]".repeat(40));
    assert_eq!(
        Frame::decode(deep.as_bytes(), Format::Json).unwrap_err().message,
        "Frame is nested too deeply"
    );
    let nested = [[0x91].repeat(100_000), vec![0xc0]].concat();
    assert!(Frame::decode(&nested, Format::Msgpack).is_err());
    // A list that claims 2³² elements allocates nothing.
    let huge = [&[0x82, 0xa6][..], b"action", &[15, 0xa8], b"messages", &[0xdd, 255, 255, 255, 255]].concat();
    assert!(Frame::decode(&huge, Format::Msgpack).is_err());
    let trailing = [Format::Msgpack.encode(&Frame::new(Action::Close)), vec![0]].concat();
    assert!(Frame::decode(&trailing, Format::Msgpack).is_err());
    // Extras with binary values or repeated keys have no JSON form.
    for extras in [&[0x81, 0xa1, b'a', 0xc4, 1, 0][..], &[0x82, 0xa1, b'a', 1, 0xa1, b'a', 2]] {
        let frame =
            [&[0x82, 0xa6][..], b"action", &[15, 0xa8], b"messages", &[0x91, 0x81, 0xa6], b"extras", extras];
        assert!(Frame::decode(&frame.concat(), Format::Msgpack).is_err());
    }
}

fn text() -> impl Strategy<Value = Option<std::borrow::Cow<'static, str>>> {
    proptest::option::of("\\PC{0,8}".prop_map(Into::into))
}

fn data() -> impl Strategy<Value = Option<Data<'static>>> {
    proptest::option::of(prop_oneof![
        "\\PC{0,12}".prop_map(|text| Data::Text(text.into())),
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| Data::Bytes(bytes.into())),
    ])
}

fn chain() -> impl Strategy<Value = Option<std::borrow::Cow<'static, str>>> {
    let chains = ["json", "utf-8", "json/utf-8/cipher+aes-256-cbc", "vcdiff"];
    proptest::option::of(proptest::sample::select(chains.to_vec()).prop_map(Into::into))
}

fn extras() -> impl Strategy<Value = Option<Json>> {
    let objects = ["{}", r#"{"headers":{"a":[1,-2,1.5,null,true]}}"#, r#"{"ref":{"é":"\"x"}}"#];
    proptest::option::of(
        proptest::sample::select(objects.to_vec()).prop_map(|text| Json::parse(text).unwrap()),
    )
}

prop_compose! {
    fn message()(id in text(), name in text(), data in data(), encoding in chain(), client_id in text(),
        connection_id in text(), timestamp in any::<Option<i64>>(), extras in extras()) -> Message<'static> {
        Message { id, name, data, encoding, client_id, connection_id, timestamp, extras, action: Some(0), ..Message::default() }
    }
}

prop_compose! {
    fn member()(id in text(), client_id in text(), data in data(), encoding in chain(), extras in extras(),
        action in proptest::sample::select(&PresenceAction::ALL[..])) -> PresenceMessage<'static> {
        PresenceMessage { id, client_id, connection_id: None, timestamp: Some(1), encoding, data, extras, action }
    }
}

prop_compose! {
    fn frames()(action in proptest::sample::select(Action::ALL), id in text(), channel in text(),
        msg_serial in any::<Option<u64>>(), flags in any::<Option<u32>>(),
        messages in proptest::option::of(proptest::collection::vec(message(), 0..3)),
        presence in proptest::option::of(proptest::collection::vec(member(), 0..3)),
        params in proptest::option::of(proptest::collection::btree_map("\\PC{1,4}", "\\PC{0,4}", 0..3))) -> Frame<'static> {
        Frame { id, channel, msg_serial, flags, messages, presence, params, ..Frame::new(action) }
    }
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    #[test]
    fn both_encodings_decode_to_the_frame(frame in frames()) {
        for format in [Format::Json, Format::Msgpack] {
            prop_assert_eq!(&Frame::decode(&format.encode(&frame), format).unwrap(), &frame);
        }
    }

    #[test]
    fn a_stored_message_is_restored_from_its_payload(message in message()) {
        let stored = parlor_model::Message {
            payload: Some(egress::stored(&message)),
            source: egress::SOURCE.into(),
            ..room_message()
        };
        let assigned = Message { timestamp: None, action: None, connection_id: None, ..message };
        prop_assert_eq!(egress::restore(&stored), assigned);
    }

    #[test]
    fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in [Format::Json, Format::Msgpack] {
            let _ = Frame::decode(&bytes, format);
            let _ = parlor_wire::ably::rest::publish(&bytes, format);
        }
    }

    #[test]
    fn a_damaged_frame_is_rejected_or_decodes_the_same_again(
        frame in frames(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        for format in [Format::Json, Format::Msgpack] {
            let mut bytes = format.encode(&frame);
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            if let Ok(decoded) = Frame::decode(&bytes, format) {
                prop_assert_eq!(&Frame::decode(&format.encode(&decoded), format).unwrap(), &decoded);
            }
        }
    }
}
