//! Rows that commands and queries with a type of their own read from the store, besides those of the caller.

use crate::callers::{CallerKind, coder_member, lobby, member, other_member, other_user, person, room};
use crate::fixtures::message;
use parlor_engine::decide::Change;
use parlor_model::{
    Agent, AgentId, Destination, MemberId, Message, MessageId, Path, Pin, Room, RoomRole, Sender, Seq, Task,
    TaskId, TaskStatus, Time, UserId,
};
use std::sync::Arc;

pub type Stored = fn(CallerKind) -> Vec<Change>;

/// The room and the caller's membership only.
pub const READY: Stored = |_| Vec::new();
pub const NO_ROOM: Stored = |_| vec![Change::RemoveRoom(lobby())];

pub const ADMINS_APPROVE: Stored = |_| {
    let room = Room { approve_role: RoomRole::Admin, ..room() };
    vec![Change::PutRoom(Arc::new(room))]
};

pub const ANOTHERS_MESSAGE: Stored = |_| vec![Change::PutMessage(message(Sender::User(other_user())))];
pub const MESSAGE_CLEARED_AWAY: Stored = |who| {
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.extend(who.own_member().map(|mut own| {
        own.room_preferences.cleared_through = message(Sender::User(other_user())).seq;
        Change::PutMember(Arc::new(own))
    }));
    changes
};
pub const MESSAGE_ON_A_PATH: Stored = |_| {
    let destination = Destination::Path(Path::stored("slack/team"));
    let on_path = Message { destination, ..Message::clone(&message(Sender::Source("bridge".into()))) };
    vec![Change::PutMessage(Arc::new(on_path))]
};
pub const OWN_PIN: Stored = |who| pinned_by(who, who.user().unwrap_or_else(other_user));
pub const ANOTHERS_PIN: Stored = |who| pinned_by(who, other_user());

fn pinned_by(who: CallerKind, by: UserId) -> Vec<Change> {
    let pin = Pin { room: lobby(), message: MessageId::stored("message"), by, seq: Seq(6), at: Time(6) };
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.push(Change::PutPin(pin));
    changes
}

/// The agent `coder` of the column `AgentOwner`, outside the room.
pub const TASK_AGENT: Stored = |_| {
    let agent = CallerKind::AgentOwner.user().map(|owner| Agent {
        id: AgentId::stored("coder"),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    });
    agent.map(|agent| Change::PutAgent(Arc::new(agent))).into_iter().collect()
};
pub const TASK_AGENT_IN_ROOM: Stored = |who| {
    let mut changes = TASK_AGENT(who);
    changes.push(Change::PutMember(Arc::new(member(coder_member(), RoomRole::Member))));
    changes
};
pub const TASK_AGENT_NO_ROOM: Stored = |who| {
    let mut changes = TASK_AGENT(who);
    changes.extend(NO_ROOM(who));
    changes
};
pub const A_TASK: Stored = |_| put_task(other_member(), None);
pub const TASK_OF_MEMBER: Stored = |_| put_task(person("member"), None);
pub const TASK_FOR_MEMBER: Stored = |_| put_task(other_member(), Some(person("member")));
pub const TASK_FOR_CODER: Stored = |who| {
    let mut changes = TASK_AGENT_IN_ROOM(who);
    changes.extend(put_task(other_member(), Some(coder_member())));
    changes
};
pub const TASK_FOR_CODER_WHO_LEFT: Stored = |who| {
    let mut changes = TASK_AGENT(who);
    changes.extend(put_task(other_member(), Some(coder_member())));
    changes
};
pub const UNASSIGNED_TASK_CODER_IN_ROOM: Stored = |who| {
    let mut changes = TASK_AGENT_IN_ROOM(who);
    changes.extend(A_TASK(who));
    changes
};

fn put_task(created_by: MemberId, assignee: Option<MemberId>) -> Vec<Change> {
    let task = Task {
        id: TaskId::stored("task"),
        room: lobby(),
        title: "Tidy up".into(),
        description: None,
        status: TaskStatus::Pending,
        result: None,
        due_at: None,
        assignee,
        created_by,
        created_at: Time(1),
        updated_at: Time(1),
    };
    vec![Change::PutTask(Arc::new(task))]
}
