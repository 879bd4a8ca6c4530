//! An in-process replacement for the `/ws/gateway` connection: ordered, bounded text frames in both
//! directions.

use tokio::sync::mpsc;

/// One end of a frame channel. Sending waits while its direction is full; dropping one end closes the other.
#[derive(Debug)]
pub struct FrameChannel {
    pub incoming: mpsc::Receiver<String>,
    pub outgoing: mpsc::Sender<String>,
}

/// Creates two connected ends; each direction holds at most `capacity` frames.
pub fn frame_channel(capacity: usize) -> (FrameChannel, FrameChannel) {
    let (to_second, from_first) = mpsc::channel(capacity);
    let (to_first, from_second) = mpsc::channel(capacity);
    (
        FrameChannel { incoming: from_second, outgoing: to_second },
        FrameChannel { incoming: from_first, outgoing: to_first },
    )
}
