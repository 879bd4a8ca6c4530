//! Frames of project channels, from the events and signals of rooms.

use parlor_engine::feed::Names;
use parlor_model::{Epoch, Event, LoggedEvent, Signal, SignalStamp, Task};
use parlor_wire::ably::channel::Channel;
use parlor_wire::ably::egress::Publication;
use parlor_wire::ably::frames::Format;
use parlor_wire::ably::jaibber::rest;
use parlor_wire::ably::jaibber::{TaskChange, room_frame, signal_frame, task_frame};

/// Encodes an event of a room; `None` if Jaibber has no message for it.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch, names: &Names, format: Format) -> Option<Vec<u8>> {
    let LoggedEvent { seq, at, event } = logged_event;
    let channel = Channel::Project(event.room()?.clone()).name();
    let id = format!("task-{}", seq.0);
    let publication = Publication { id: &id, connection: None, seq: *seq, at: *at, epoch };
    match event {
        Event::MessagePosted { message, .. } => Some(format.encode(&room_frame(message, epoch, &channel)?)),
        Event::TaskChanged(task) => {
            let assignee = task.assignee.as_ref().and_then(|assignee| names.in_room(&task.room, assignee));
            let creator = names.in_room(&task.room, &task.created_by);
            let creator = creator.as_deref().unwrap_or(task.created_by.as_str());
            let body = rest::Task::of(task, assignee.as_deref(), creator);
            let change = if is_new(task) { TaskChange::Created } else { TaskChange::Updated };
            Some(format.encode(&task_frame(change, Some(&body), &task.room, publication, &channel)))
        }
        Event::TaskRemoved { room, task } => {
            Some(format.encode(&task_frame(TaskChange::Deleted(task), None, room, publication, &channel)))
        }
        _ => None,
    }
}

/// Whether the event is the creation of the task: the time of the last change is then that of the creation.
fn is_new(task: &Task) -> bool {
    task.updated_at == task.created_at
}

/// Encodes a signal of a room; `None` if Jaibber has no message for it.
pub fn signal(signal: &Signal, stamp: SignalStamp, format: Format) -> Option<Vec<u8>> {
    signal_frame(signal, stamp).map(|frame| format.encode(&frame))
}
