//! Minimal encoder and decoder of WebSocket frames for the load generator.
//!
//! Client and server share the cores of the machine, so the client must be cheap: it counts deliveries by
//! parsing the frame headers and comparing the first bytes of each payload, without storing payloads.

/// Appends one masked text frame.
pub fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    push(out, 0x81, text);
}

/// Appends one masked binary frame.
pub fn push_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    push(out, 0x82, bytes);
}

/// Appends a close frame with code 1000.
pub fn push_close(out: &mut Vec<u8>) {
    push(out, 0x88, &1000_u16.to_be_bytes());
}

fn push(out: &mut Vec<u8>, first_byte: u8, payload: &[u8]) {
    const MASKED: u8 = 0x80;
    out.push(first_byte);
    match payload.len() {
        length @ 0..=125 => out.push(MASKED | length as u8),
        length @ 126..=0xffff => {
            out.push(MASKED | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(MASKED | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    // A mask of zeros is valid: the server does its full work, and the client saves the XOR.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
}

/// Parses the header of an unmasked frame: (opcode, header length, payload length). `None` if bytes are
/// missing.
pub fn header(bytes: &[u8]) -> Option<(u8, usize, u64)> {
    let opcode = bytes.first()? & 0x0f;
    match *bytes.get(1)? & 0x7f {
        126 => {
            let length = bytes.get(2..4)?.try_into().expect("the range has two bytes");
            Some((opcode, 4, u64::from(u16::from_be_bytes(length))))
        }
        127 => {
            let length = bytes.get(2..10)?.try_into().expect("the range has eight bytes");
            Some((opcode, 10, u64::from_be_bytes(length)))
        }
        short => Some((opcode, 2, u64::from(short))),
    }
}

pub const CLOSE: u8 = 8;

/// Number of payload bytes in which the marker is searched.
const HEAD_BYTES: usize = 128;
const MAX_HEADER_BYTES: usize = 10;

/// Parses the bytes of one connection and counts the frames with a marker in their first bytes.
pub struct FrameCounter {
    marker: &'static [u8],
    /// Offset at which the marker was last found, which rarely changes.
    marker_at: usize,
    header: [u8; MAX_HEADER_BYTES],
    header_length: usize,
    payload_length: u64,
    payload_left: u64,
    head: [u8; HEAD_BYTES],
    head_length: usize,
    pub marked: u64,
    pub marked_payload_bytes: u64,
    /// Last frame without the marker, for error messages.
    pub last_other: Option<String>,
}

impl FrameCounter {
    pub fn new(marker: &'static str) -> Self {
        Self {
            marker: marker.as_bytes(),
            marker_at: 0,
            header: [0; MAX_HEADER_BYTES],
            header_length: 0,
            payload_length: 0,
            payload_left: 0,
            head: [0; HEAD_BYTES],
            head_length: 0,
            marked: 0,
            marked_payload_bytes: 0,
            last_other: None,
        }
    }

    /// Processes the next bytes of the stream; they may contain partial frames.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.payload_left == 0 {
                bytes = self.feed_header(bytes);
            } else {
                bytes = self.feed_payload(bytes);
            }
        }
    }

    fn feed_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        self.header[self.header_length] = bytes[0];
        self.header_length += 1;
        if let Some((_, length, payload)) = header(&self.header[..self.header_length])
            && length == self.header_length
        {
            self.header_length = 0;
            self.head_length = 0;
            self.payload_length = payload;
            self.payload_left = payload;
            if payload == 0 {
                self.end_of_frame();
            }
        }
        &bytes[1..]
    }

    fn feed_payload<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let taken = bytes.len().min(usize::try_from(self.payload_left).unwrap_or(usize::MAX));
        let looked_at = taken.min(HEAD_BYTES - self.head_length);
        self.head[self.head_length..][..looked_at].copy_from_slice(&bytes[..looked_at]);
        self.head_length += looked_at;
        self.payload_left -= taken as u64;
        if self.payload_left == 0 {
            self.end_of_frame();
        }
        &bytes[taken..]
    }

    fn end_of_frame(&mut self) {
        let head = &self.head[..self.head_length];
        let same_place = head.get(self.marker_at..).is_some_and(|tail| tail.starts_with(self.marker));
        if !same_place {
            let place = head.windows(self.marker.len()).position(|window| window == self.marker);
            let Some(place) = place else {
                self.last_other = Some(String::from_utf8_lossy(head).into_owned());
                return;
            };
            self.marker_at = place;
        }
        self.marked += 1;
        self.marked_payload_bytes += self.payload_length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_for_any_chunk_size() {
        let frames = [
            server_frame(br#"{"type":"server:new_message","x":1}"#),
            server_frame(b""),
            server_frame(br#"{"type":"server:presence"}"#),
            server_frame(format!(r#"{{"type":"server:new_message","x":"{}"}}"#, "y".repeat(300)).as_bytes()),
            server_frame(
                format!(r#"{{"type":"server:new_message","x":"{}"}}"#, "z".repeat(70_000)).as_bytes(),
            ),
        ]
        .concat();
        for piece in [1, 2, 3, 7, 50, 1_000, frames.len()] {
            let mut counter = FrameCounter::new("new_message");
            frames.chunks(piece).for_each(|bytes| counter.feed(bytes));
            assert_eq!(counter.marked, 3, "in chunks of {piece}");
            assert_eq!(counter.marked_payload_bytes, 35 + 336 + 70_036, "in chunks of {piece}");
            assert_eq!(counter.last_other.as_deref(), Some(r#"{"type":"server:presence"}"#));
        }
    }

    #[test]
    fn a_client_frame_has_a_mask_and_the_right_length() {
        for length in [0, 125, 126, 0xffff, 0x1_0000] {
            let mut out = Vec::new();
            push_text(&mut out, &vec![b'a'; length]);
            let (opcode, header_length, payload) = header(&out).unwrap();
            assert_eq!((opcode, payload), (1, length as u64));
            assert_eq!(out[1] & 0x80, 0x80);
            assert_eq!(out.len(), header_length + 4 + length);
        }
    }

    fn server_frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        push_text(&mut frame, payload);
        let (_, header_length, _) = header(&frame).unwrap();
        frame[1] &= 0x7f;
        frame.drain(header_length..header_length + 4);
        frame
    }
}
