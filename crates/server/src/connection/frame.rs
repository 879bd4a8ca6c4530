//! WebSocket frames as bytes. A server's frames are not masked, so one encoding serves every connection.

use bytes::{BufMut, Bytes, BytesMut};

const TEXT: u8 = 0x81;
const CLOSE: u8 = 0x88;

pub fn text(payload: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 10);
    append_text(&mut frame, payload);
    frame.freeze()
}

/// One more frame behind those that are there.
pub fn append_text(frames: &mut BytesMut, payload: &str) {
    header(frames, TEXT, payload.len());
    frames.put_slice(payload.as_bytes());
}

pub fn close(code: u16, reason: &str) -> Bytes {
    // A control frame holds 125 bytes: two for the code.
    let reason = &reason[..reason.floor_char_boundary(123)];
    let mut frame = BytesMut::with_capacity(reason.len() + 4);
    header(&mut frame, CLOSE, reason.len() + 2);
    frame.put_u16(code);
    frame.put_slice(reason.as_bytes());
    frame.freeze()
}

/// Several frames as one buffer, written together.
pub fn together(frames: &[Bytes]) -> Bytes {
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
