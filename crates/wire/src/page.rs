//! Frames for a client that opened all its rooms with `client:follow`, such as the web page: every change once.
//!
//! A change that has a frame of AgentIM is sent as that frame. Chat events are sent only for the subjects that no
//! frame covers, such as plans, questions and activities. The choice is made for each subject, because one event may
//! have several: the prompt of a mission is a message, which has a frame, and an activity, which has none.

use crate::agentim;
use crate::agentim::frames::ServerFrame;
use crate::agentim::frames::server::Following;
use crate::events::egress::{self as events, Filter};
use crate::events::frames::{StreamFormat, Subject};
use crate::frames::encode;
use parlor_model::{Epoch, LoggedEvent, Position, Signal, SignalStamp};

const FRAMES: Filter = Filter { form: StreamFormat::Frame, session: None, agent: None, root: None };

/// Encodes an event. The last frame that has a position carries that of the event, so that a client that disconnects
/// in between receives all frames again.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch, root: Option<&str>) -> Vec<String> {
    let frame = agentim::egress::event(logged_event, epoch);
    let position = frame.is_none().then_some(Position { epoch, seq: logged_event.seq });
    let mut frames = events::event_frames(logged_event, root, position, |subject| !has_frame(subject));
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

/// Whether a frame of AgentIM contains everything that a client needs to know of the subject.
fn has_frame(subject: &Subject<'_>) -> bool {
    match subject {
        Subject::Message(_)
        | Subject::MessageEdited(_)
        | Subject::MessageDeleted(_)
        | Subject::MessagePinned(_)
        | Subject::MessageUnpinned(_)
        | Subject::MessageBookmarked(_)
        | Subject::MessageUnbookmarked(_)
        | Subject::MessagesRewound(_)
        | Subject::Reaction(_)
        | Subject::Receipt(_)
        | Subject::RoomChanged(_)
        | Subject::RoomMembers(_)
        | Subject::RoomRemoved
        | Subject::RoomArranged(_)
        | Subject::RoomCleared
        | Subject::TaskChanged(_)
        | Subject::TaskRemoved(_)
        | Subject::Token(_)
        | Subject::TokensDone(_)
        | Subject::TextSegment(_)
        | Subject::BlockStart(_)
        | Subject::BlockUpdate(_)
        | Subject::ApprovalAsked(_)
        | Subject::ApprovalResolved(_)
        | Subject::Typing(_)
        | Subject::UserPresence(_)
        | Subject::AgentPresence(_)
        | Subject::Terminal => true,
        Subject::RunSync
        | Subject::RunResync(_)
        | Subject::RunOutcome(_)
        | Subject::PlanUpdate(_)
        | Subject::ContextUsage(_)
        | Subject::SubagentSpawned(_)
        | Subject::SubagentResult(_)
        | Subject::ChangeReport(_)
        | Subject::TurnComplete(_)
        | Subject::ActivityDoing(_)
        | Subject::ActivityDone(_)
        | Subject::IdlePrompt(_)
        | Subject::Queue(_)
        | Subject::ToolProgress(_)
        | Subject::ModelFallback(_)
        | Subject::QuestionsAsked(_)
        | Subject::QuestionsResolved(_) => false,
    }
}
