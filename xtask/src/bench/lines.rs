//! Counts server-sent events by the prefix of their data line, without parsing the rest.

/// Counts the lines that start with a prefix, for any chunk size. HTTP chunk headers are separate lines, and
/// no HTTP chunk ends within an event, so they do not disturb the count.
pub struct LineCounter {
    prefix: &'static str,
    /// First bytes of the current line, up to the length of the prefix.
    line_start: Vec<u8>,
    /// Length of the current line so far.
    length: u64,
    pub marked: u64,
    pub marked_bytes: u64,
}

impl LineCounter {
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, line_start: Vec::with_capacity(prefix.len()), length: 0, marked: 0, marked_bytes: 0 }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        // The texts of a measurement are ASCII; for other text, only the byte count would be inexact.
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split('\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            self.add(line);
            if self.line_start == self.prefix.as_bytes() {
                self.marked += 1;
                self.marked_bytes += self.length;
            }
            self.line_start.clear();
            self.length = 0;
        }
        self.add(last);
    }

    fn add(&mut self, text: &str) {
        let missing = self.prefix.len().saturating_sub(self.line_start.len()).min(text.len());
        self.line_start.extend_from_slice(&text.as_bytes()[..missing]);
        self.length += text.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_for_any_chunk_size() {
        let text = b"200 OK\r\n\r\n1f\r\nid: 1-2\ndata: {\"id\":\"msg-1\"}\n\n\r\n5\r\n:\n\n\r\n\
            data: {\"id\":\"act-1\"}\n\ndata: {\"id\":\"msg-2\"}\n\ndata: {\"id\":\"msg-3";
        for size in [1, 2, 3, 7, text.len()] {
            let mut counter = LineCounter::new("data: {\"id\":\"msg-");
            text.chunks(size).for_each(|piece| counter.feed(piece));
            assert_eq!((counter.marked, counter.marked_bytes), (2, 40), "chunks of {size}");
        }
    }
}
