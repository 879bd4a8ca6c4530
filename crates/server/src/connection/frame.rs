//! Encodes WebSocket frames. A server does not mask its frames, so one encoded frame serves all connections.

use bytes::{BufMut, Bytes, BytesMut};

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

pub fn text(payload: &str) -> Bytes {
    message(TEXT, payload.as_bytes())
}

/// Builds a text frame from the UTF-8 bytes of an encoder.
pub fn text_of_utf8(payload: &[u8]) -> Bytes {
    debug_assert!(std::str::from_utf8(payload).is_ok(), "a text frame is UTF-8");
    message(TEXT, payload)
}

pub fn binary(payload: &[u8]) -> Bytes {
    message(BINARY, payload)
}

fn message(kind: u8, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 10);
    header(&mut frame, kind, payload.len());
    frame.put_slice(payload);
    frame.freeze()
}

/// A ping without payload, which every WebSocket client answers by itself.
pub fn ping() -> Bytes {
    let mut frame = BytesMut::with_capacity(2);
    header(&mut frame, PING, 0);
    frame.freeze()
}

pub fn close(code: u16, reason: &str) -> Bytes {
    // The payload of a control frame is at most 125 bytes, two of them for the code.
    let reason = &reason[..reason.floor_char_boundary(123)];
    let mut frame = BytesMut::with_capacity(reason.len() + 4);
    header(&mut frame, CLOSE, reason.len() + 2);
    frame.put_u16(code);
    frame.put_slice(reason.as_bytes());
    frame.freeze()
}

/// Concatenates frames into one buffer, so that they are written together.
pub fn concat(frames: &[Bytes]) -> Bytes {
    frames.concat().into()
}

fn header(frame: &mut BytesMut, kind: u8, length: usize) {
    frame.put_u8(kind);
    match length {
        0..=125 => frame.put_u8(length as u8),
        126..=0xffff => {
            frame.put_u8(126);
            frame.put_u16(length as u16);
        }
        _ => {
            frame.put_u8(127);
            frame.put_u64(length as u64);
        }
    }
}
