//! Messages of the chat-events stream.

use crate::check;
use crate::samples::{AT, EPOCH, NOW, events, logged, message, room_id, signals};
use parlor_model::{Event, Ordinal, SignalStamp};
use parlor_wire::events::egress::{self, Filter};
use parlor_wire::events::frames::StreamFormat;
use std::sync::Arc;

const STAMP: SignalStamp = SignalStamp { ordinal: Ordinal(99), at: NOW };

fn frames(form: StreamFormat) -> Vec<String> {
    let filter = Filter { form, ..Filter::default() };
    let mut frames: Vec<String> =
        events().into_iter().flat_map(|event| egress::event(&logged(event), EPOCH, &filter, None)).collect();
    frames.extend(signals().iter().filter_map(|signal| egress::signal(signal, STAMP, &filter, Some("/w"))));
    let posted = logged(Event::MessagePosted { message: Arc::new(message()), deliveries: Arc::new([]) });
    frames.extend([
        egress::position(AT, form),
        egress::resync("broadcast_lag", Some(3), None, STAMP, form),
        egress::resync("position", None, Some(AT), STAMP, form),
    ]);
    frames.extend(egress::replay(&posted, STAMP, &filter, Some("/w")));
    frames.extend(egress::room_lost(&room_id(), &posted, &filter, Some("/w")));
    frames
}

#[test]
fn events_on_a_websocket_have_the_same_bytes() {
    check("events-frames.jsonl", &frames(StreamFormat::Frame));
}

#[test]
fn blocks_of_server_sent_events_have_the_same_bytes() {
    check("events-blocks.txt", &frames(StreamFormat::Block));
}
