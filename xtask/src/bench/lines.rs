//! Counts server-sent events by how their line of data begins, without looking at the rest of it.

/// Lines that begin as wanted, in whatever pieces they come. Chunks of HTTP begin with a line of their own, and none of
/// them ends within an event.
pub struct LineCounter {
    prefix: &'static str,
    /// How the line that has not ended yet begins, as far as it matters, and how long it is.
    begun: Vec<u8>,
    length: u64,
    pub marked: u64,
    pub marked_bytes: u64,
}

impl LineCounter {
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, begun: Vec::with_capacity(prefix.len()), length: 0, marked: 0, marked_bytes: 0 }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        // The texts of a measurement are plain; whatever is not is only counted less exactly.
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split('\n');
        let last = lines.next_back().unwrap_or_default();
        for line in lines {
            self.add(line);
            if self.begun == self.prefix.as_bytes() {
                self.marked += 1;
                self.marked_bytes += self.length;
            }
            self.begun.clear();
            self.length = 0;
        }
        self.add(last);
    }

    fn add(&mut self, piece: &str) {
        let missing = self.prefix.len().saturating_sub(self.begun.len()).min(piece.len());
        self.begun.extend_from_slice(&piece.as_bytes()[..missing]);
        self.length += piece.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_in_whatever_pieces_they_come() {
        let text = b"200 OK\r\n\r\n1f\r\nid: 1-2\ndata: {\"id\":\"msg-1\"}\n\n\r\n5\r\n:\n\n\r\n\
            data: {\"id\":\"act-1\"}\n\ndata: {\"id\":\"msg-2\"}\n\ndata: {\"id\":\"msg-3";
        for size in [1, 2, 3, 7, text.len()] {
            let mut counter = LineCounter::new("data: {\"id\":\"msg-");
            text.chunks(size).for_each(|piece| counter.feed(piece));
            assert_eq!((counter.marked, counter.marked_bytes), (2, 40), "pieces of {size}");
        }
    }
}
