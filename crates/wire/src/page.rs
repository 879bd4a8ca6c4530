//! Frames for a client that opened all its rooms with `client:follow`, such as the web page: every change once.
//!
//! A change that has a frame of AgentIM is sent as that frame. Chat events are sent only for the subjects that no
//! frame covers, such as plans, questions and activities. The choice is made for each subject, because one event may
//! have several: the prompt of a mission is a message, which has a frame, and an activity, which has none.

use crate::agentim;
use crate::agentim::frames::ServerFrame;
use crate::agentim::frames::server::Following;
use crate::events::egress::{self as events, Filter};
use crate::events::frames::StreamFormat;
use crate::frames::encode;
use parlor_model::{Epoch, LoggedEvent, Position, Signal, SignalStamp};

const FRAMES: Filter = Filter { form: StreamFormat::Frame, session: None, agent: None, root: None };

/// Encodes an event. Only the last frame of an event carries its position. A client that loses the connection before
/// that frame resumes from the previous event and receives all frames again.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch, root: Option<&str>) -> Vec<String> {
    let frame = agentim::egress::event(logged_event, epoch);
    let position = frame.is_none().then_some(Position { epoch, seq: logged_event.seq });
    let mut frames = events::event_frames(logged_event, root, position, |subject| !subject.has_frame());
    frames.extend(frame);
    frames
}

/// Encodes an open approval for a late joiner.
pub fn open_approval(
    asked: &LoggedEvent,
    stamp: SignalStamp,
    epoch: Epoch,
    root: Option<&str>,
) -> Option<String> {
    agentim::egress::event(asked, epoch).or_else(|| events::replay(asked, stamp, &FRAMES, root))
}

/// Encodes a signal; `None` if neither protocol has a frame for it.
pub fn signal(signal: &Signal, stamp: SignalStamp, root: Option<&str>) -> Option<String> {
    agentim::egress::signal(signal).or_else(|| events::signal(signal, stamp, &FRAMES, root))
}

/// Encodes the position from which on all rooms of the user are open.
pub fn following(position: Position) -> String {
    encode(&ServerFrame::Following(Following { position: position.to_string() }))
}
