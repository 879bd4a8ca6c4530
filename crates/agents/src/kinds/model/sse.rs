//! The lines of `text/event-stream`, as far as models use them: each event's data, bounded.

/// Of one event; a piece of text or thinking is far smaller.
const LONGEST: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Default)]
pub struct SseParser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_return: bool,
}

impl SseParser {
    /// Takes bytes in as they come, and gives the data of each event that became whole.
    pub fn feed(&mut self, bytes: &[u8], found: &mut Vec<String>) -> Result<(), TooLong> {
        for &byte in bytes {
            let again = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if again => {}
                b'\n' | b'\r' => self.end_line(found),
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > LONGEST {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    fn end_line(&mut self, found: &mut Vec<String>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                let data = std::mem::take(&mut self.data);
                found.push(String::from_utf8_lossy(&data).into_owned());
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        }
        // Other fields and comments mean nothing here: what an event is, its data says.
        self.line = line;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    fn read(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<String> {
        let (mut events, mut found) = (SseParser::default(), Vec::new());
        for piece in pieces {
            events.feed(piece.as_ref(), &mut found).unwrap();
        }
        found
    }

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let text = ": hello\r\nevent: x\r\ndata: {\"a\":1}\r\n\r\ndata:one\ndata: two\n\nid: 7\n\ndata: [DONE]\n\ndata: unfinished";
        let expected = ["{\"a\":1}", "one\ntwo", "[DONE]"];
        assert_eq!(read([text]), expected);
        assert_eq!(read(text.as_bytes().chunks(1)), expected);
        assert_eq!(read(text.as_bytes().chunks(3)), expected);
        assert_eq!(read(["data: a\r\rdata: \u{e9}\n\n"]), ["a", "é"]);
        assert_eq!(read([&b"data: \xff\n\n"[..]]), ["\u{fffd}"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let (mut events, mut found) = (SseParser::default(), Vec::new());
        let flood = vec![b'x'; 64 * 1024];
        let fed: Result<Vec<()>, TooLong> =
            iter::repeat_n((), 20).map(|()| events.feed(&flood, &mut found)).collect();
        assert_eq!(fed, Err(TooLong));
        let (mut events, mut line) = (SseParser::default(), b"data: ".to_vec());
        line.extend_from_slice(&flood);
        line.push(b'\n');
        let fed: Result<Vec<()>, TooLong> =
            iter::repeat_n((), 20).map(|()| events.feed(&line, &mut found)).collect();
        assert_eq!(fed, Err(TooLong));
        assert!(found.is_empty());
    }
}
