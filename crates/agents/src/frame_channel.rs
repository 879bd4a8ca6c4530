//! A `/ws/gateway` within one process: text frames in both directions, in order, and bounded.

use tokio::sync::mpsc;

/// One end of a link. A full direction makes its writer wait; an end that is dropped ends the other.
#[derive(Debug)]
pub struct FrameChannel {
    pub incoming: mpsc::Receiver<String>,
    pub outgoing: mpsc::Sender<String>,
}

/// Two ends, with room for so many frames in each direction.
pub fn frame_channel(room: usize) -> (FrameChannel, FrameChannel) {
    let (to_there, there) = mpsc::channel(room);
    let (to_here, here) = mpsc::channel(room);
    (FrameChannel { incoming: here, outgoing: to_there }, FrameChannel { incoming: there, outgoing: to_here })
}
