//! Rows that commands and queries with a type of their own read from the store, besides those of the caller.

use crate::callers::{CallerKind, coder_member, lobby, member, other_member, other_user, person, room};
use crate::fixtures::{message, run};
use parlor_engine::decide::Change;
use parlor_model::{
    Agent, AgentId, Approval, ApprovalId, ApprovalRule, ApprovalSubject, Destination, GatewayId, InputDigest,
    MemberId, Message, MessageId, Path, Payload, Pin, Room, RoomRole, RunId, Sender, Seq, Task, TaskId,
    TaskStatus, Time, UserId,
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
pub const TASK_AGENT: Stored = |_| CallerKind::AgentOwner.user().map(put_coder).into_iter().collect();
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

pub const PLANNED_RUN: Stored = |_| vec![Change::PutRun(Arc::new(run()))];

pub const APPROVAL: Stored = |_| {
    let approval = Approval {
        id: ApprovalId::stored("approval"),
        run: RunId::stored("run"),
        room: lobby(),
        agent: AgentId::stored("coder"),
        agent_name: "Coder".into(),
        gateway: GatewayId::stored("gateway"),
        request: "1".into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload("{}".into())),
        digest: InputDigest([1; 32]),
        asked_at: Time(5),
        expires_at: Time(6),
        decision: None,
        decided_at: None,
    };
    vec![Change::PutApproval(Arc::new(approval))]
};
pub const APPROVAL_FOR_ADMINS: Stored = |who| {
    let mut changes = APPROVAL(who);
    changes.extend(ADMINS_APPROVE(who));
    changes
};
/// An approval requested by the caller's own agent, which grants no additional permission.
pub const APPROVAL_OF_OWN_AGENT: Stored = |who| {
    let mut changes = APPROVAL(who);
    changes.extend(who.user().map(put_coder));
    changes
};
pub const APPROVAL_IN_NO_ROOM: Stored = |who| {
    // The store removes the approvals of a room with the room, so the approval is added afterwards.
    let mut changes = NO_ROOM(who);
    changes.extend(APPROVAL(who));
    changes
};
pub const OWN_APPROVAL_RULE: Stored = |who| put_rule(who.user().unwrap_or_else(other_user));
pub const ANOTHERS_APPROVAL_RULE: Stored = |_| put_rule(other_user());

fn put_rule(by: UserId) -> Vec<Change> {
    let (agent, tool, at) = (AgentId::stored("coder"), "Bash".into(), Time(5));
    vec![Change::PutApprovalRule(ApprovalRule { room: lobby(), agent, tool, by, at })]
}

/// Stores the agent `coder` of this user.
fn put_coder(owner: UserId) -> Change {
    Change::PutAgent(Arc::new(Agent {
        id: AgentId::stored("coder"),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    }))
}
