//! Incremental parser for `text/event-stream`: returns the data of each event. Event names and ids are
//! ignored.

/// Maximum bytes of one event; events with a text or thinking delta are far smaller.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// Error: an event is over the size limit.
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
    /// Consumes received bytes and appends the data of each completed event to `found`.
    pub fn feed(&mut self, bytes: &[u8], found: &mut Vec<String>) -> Result<(), TooLong> {
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(found),
                byte => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
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
        // Other fields and comments are ignored: the data alone tells the type of an event.
        self.line = line;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;

    fn read(chunks: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<String> {
        let (mut events, mut found) = (SseParser::default(), Vec::new());
        for chunk in chunks {
            events.feed(chunk.as_ref(), &mut found).unwrap();
        }
        found
    }

    #[test]
    fn events_are_complete_however_the_bytes_are_split() {
        let text = ": hello\r\nevent: x\r\ndata: {\"a\":1}\r\n\r\ndata:one\ndata: two\n\nid: 7\n\ndata: [DONE]\n\ndata: unfinished";
        let expected = ["{\"a\":1}", "one\ntwo", "[DONE]"];
        assert_eq!(read([text]), expected);
        assert_eq!(read(text.as_bytes().chunks(1)), expected);
        assert_eq!(read(text.as_bytes().chunks(3)), expected);
        assert_eq!(read(["data: a\r\rdata: \u{e9}\n\n"]), ["a", "é"]);
        assert_eq!(read([&b"data: \xff\n\n"[..]]), ["\u{fffd}"]);
    }

    #[test]
    fn an_endless_line_is_rejected() {
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
