//! Frames of the Ably protocol for the fan-out, in JSON and msgpack, written by hand: a client of the benchmark must
//! be cheap.

use super::frames;

/// Encoding of the frames of a connection.
#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Json,
    Msgpack,
}

/// Channel of the measurement. It is no room, so its messages are stored and delivered without further rules.
pub const CHANNEL: &str = "bench";

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Msgpack => "msgpack",
        }
    }

    /// Marker of a CONNECTED frame.
    pub fn connected(self) -> &'static str {
        match self {
            Self::Json => r#""action":4,"#,
            Self::Msgpack => "action\u{4}",
        }
    }

    /// Marker of an ATTACHED frame.
    pub fn attached(self) -> &'static str {
        match self {
            Self::Json => r#""action":11,"#,
            Self::Msgpack => "action\u{b}",
        }
    }

    /// Marker of a MESSAGE frame.
    pub fn message(self) -> &'static str {
        match self {
            Self::Json => r#""action":15,"#,
            Self::Msgpack => "action\u{f}",
        }
    }

    /// Appends an ATTACH frame.
    pub fn push_attach(self, out: &mut Vec<u8>) {
        match self {
            Self::Json => {
                frames::push_text(out, format!(r#"{{"action":10,"channel":"{CHANNEL}"}}"#).as_bytes())
            }
            Self::Msgpack => {
                let mut frame = vec![0x82];
                push_field(&mut frame, "action", &[10]);
                push_str(&mut frame, "channel");
                push_str(&mut frame, CHANNEL);
                frames::push_binary(out, &frame);
            }
        }
    }

    /// Appends a MESSAGE frame. The hub delivers a message with a repeated serial once, so each has its own.
    pub fn push_message(self, out: &mut Vec<u8>, serial: u64, text: &str) {
        match self {
            Self::Json => {
                let frame = format!(
                    r#"{{"action":15,"channel":"{CHANNEL}","messages":[{{"name":"n","data":"{text}"}}],"msgSerial":{serial}}}"#
                );
                frames::push_text(out, frame.as_bytes());
            }
            Self::Msgpack => {
                let mut frame = vec![0x84];
                push_field(&mut frame, "action", &[15]);
                push_str(&mut frame, "channel");
                push_str(&mut frame, CHANNEL);
                push_field(&mut frame, "messages", &[0x91, 0x82]);
                push_str(&mut frame, "name");
                push_str(&mut frame, "n");
                push_str(&mut frame, "data");
                push_str(&mut frame, text);
                push_field(&mut frame, "msgSerial", &[0xcf]);
                frame.extend_from_slice(&serial.to_be_bytes());
                frames::push_binary(out, &frame);
            }
        }
    }
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    push_str(out, name);
    out.extend_from_slice(value);
}

fn push_str(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        length @ 0..=31 => out.push(0xa0 | length as u8),
        length => {
            out.push(0xda);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_in_msgpack_has_its_serial_and_text() {
        let mut out = Vec::new();
        Format::Msgpack.push_message(&mut out, 258, &"x".repeat(40));
        let (opcode, header, length) = frames::header(&out).unwrap();
        assert_eq!((opcode, length as usize), (2, out.len() - header - 4));
        let payload = &out[header + 4..];
        assert!(
            payload.starts_with(b"\x84\xa6action\x0f\xa7channel\xa5bench\xa8messages\x91\x82\xa4name\xa1n")
        );
        assert!(payload.ends_with(b"\xa9msgSerial\xcf\0\0\0\0\0\0\x01\x02"));
        assert!(payload.windows(3).any(|window| window == b"\xda\0\x28"));
    }
}
