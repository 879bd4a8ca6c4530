//! Frames of `/ws/client`.

use crate::check;
use crate::samples::{AT, EPOCH, events, logged, message_id, room_id, signals};
use parlor_model::Refusal;
use parlor_model::command::Posted;
use parlor_wire::agentim::egress;
use parlor_wire::agentim::frames::ClientFrame;
use std::collections::BTreeSet;
use std::sync::Arc;

#[test]
fn frames_to_clients_have_the_same_bytes() {
    let mut frames: Vec<String> =
        events().into_iter().filter_map(|event| egress::event(&logged(event), EPOCH)).collect();
    frames.extend(signals().iter().filter_map(egress::signal));
    let posted =
        Posted { id: message_id(), position: AT, message: None, deliveries: Arc::new([]), repeated: false };
    let refusal = Refusal::NotAMember { room: room_id() };
    frames.extend([
        egress::room_removed(&room_id()),
        egress::authenticated("u"),
        egress::not_authenticated("Invalid token"),
        egress::pong(&serde_json::from_str("1.50").unwrap()),
        egress::pong(&serde_json::from_str("1600000000000").unwrap()),
        egress::error("CODE", "A \"sentence\""),
        egress::refusal(&refusal, None),
        egress::refusal(&refusal, Some("c1")),
        egress::acknowledged(&posted, "c1"),
        egress::joined(&room_id(), AT),
        egress::resync(&room_id(), AT),
    ]);
    check("agentim-server.jsonl", &frames);
}

#[test]
fn a_frame_of_a_client_is_parsed_and_encoded_to_the_same_bytes() {
    let frames = include_str!("../fixtures/golden/agentim-client.jsonl");
    let mut kinds = BTreeSet::new();
    for text in frames.lines() {
        let kind = text.split('"').nth(3).unwrap();
        let Ok(Some(frame)) = ClientFrame::parse(kind, text) else { panic!("not a frame: {text}") };
        assert_eq!(serde_json::to_string(&frame).unwrap(), text);
        kinds.insert(kind);
    }
    assert_eq!(kinds.len(), 19, "{kinds:?}");
    assert!(matches!(ClientFrame::parse("client:unknown", "{}"), Ok(None)));
}
