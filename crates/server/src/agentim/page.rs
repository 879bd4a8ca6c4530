//! Encoder of `client:follow`: every change of the user's rooms once.

use super::closing;
use crate::connection::frame;
use crate::encoders::Encoder;
use bytes::Bytes;
use parlor_engine::feed::DisconnectReason;
use parlor_model::{Epoch, LoggedEvent, RoomId, Signal, SignalStamp};
use parlor_wire::{agentim, page};

pub struct PageEncoder {
    pub epoch: Epoch,
}

impl Encoder for PageEncoder {
    fn event(&self, logged_event: &LoggedEvent, root: Option<&str>) -> Option<Bytes> {
        frames(&page::event(logged_event, self.epoch, root))
    }

    fn open_approval(&self, asked: &LoggedEvent, stamp: SignalStamp, root: Option<&str>) -> Option<Bytes> {
        page::open_approval(asked, stamp, self.epoch, root).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        Some(frame::text(&agentim::egress::room_removed(room)))
    }

    fn signal(&self, signal: &Signal, stamp: SignalStamp, root: Option<&str>) -> Option<Bytes> {
        page::signal(signal, stamp, root).map(|text| frame::text(&text))
    }

    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        closing::disconnect_frame(reason, closing::CLIENT_TOO_SLOW)
    }
}

fn frames(texts: &[String]) -> Option<Bytes> {
    match texts {
        [] => None,
        [text] => Some(frame::text(text)),
        texts => Some(frame::concat(&texts.iter().map(|text| frame::text(text)).collect::<Vec<_>>())),
    }
}
