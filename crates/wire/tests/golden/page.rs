//! Frames for a client that opened all its rooms with `client:follow`.

use crate::check;
use crate::samples::{AT, EPOCH, NOW, events, logged, signals};
use parlor_model::{Ordinal, SignalStamp};
use parlor_wire::{agentim, page};

const STAMP: SignalStamp = SignalStamp { ordinal: Ordinal(99), at: NOW };

#[test]
fn frames_for_a_follower_have_the_same_bytes() {
    let mut frames: Vec<String> =
        events().into_iter().flat_map(|event| page::event(&logged(event), EPOCH, None)).collect();
    frames.extend(signals().iter().filter_map(|signal| page::signal(signal, STAMP, Some("/w"))));
    frames.push(page::following(AT));
    check("page.jsonl", &frames);
}

#[test]
fn the_last_frame_of_an_event_carries_the_position_if_any_does() {
    for event in events() {
        let frames = page::event(&logged(event), EPOCH, None);
        let (last, others) =
            frames.split_last().map_or((None, &[][..]), |(last, others)| (Some(last), others));
        let has_position = |frame: &String| frame.contains(r#""position":"#);
        assert!(!others.iter().any(has_position), "{frames:?}");
        let is_sent_out_of_order = ["server:permission_", "server:room_removed"];
        if let Some(last) = last.filter(|last| !is_sent_out_of_order.iter().any(|kind| last.contains(kind))) {
            assert!(has_position(last), "{last}");
        }
    }
}

#[test]
fn every_frame_of_agentim_is_sent_unchanged() {
    for event in events().into_iter().map(logged) {
        if let Some(frame) = agentim::egress::event(&event, EPOCH) {
            assert_eq!(page::event(&event, EPOCH, None).last(), Some(&frame));
        }
    }
}
