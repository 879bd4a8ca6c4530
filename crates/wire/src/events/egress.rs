//! Encodes events as messages of the chat-events stream.
//!
//! Owns: only the last message of a logged event carries a position (`id:`). A client that disconnects in the
//! middle of an event therefore receives all its messages again after a resume, with the same ordinals.

mod signals;

use signals::plan_data;
pub use signals::{queued, signal};

use super::answers::{self, QuestionAnswer};
use super::frames::{StreamFormat, UiMessage};
use crate::decisions;
use crate::relayed::RelayedFrame;
use crate::time::iso;
use parlor_model::mission;
use parlor_model::{
    AgentId, Approval, ApprovalKind, ApprovalSubject, CurrentPlan, Decision, Epoch, Event, LoggedEvent,
    Member, MemberChange, MemberId, Message, MessageId, Ordinal, Position, Room, RoomId, Run, RunOutcome,
    RunState, Sender, SignalStamp, Task,
};
use serde_json::{Value, json};

/// Encoding and filters of a subscriber. A filter that is `None` passes everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub form: StreamFormat,
    pub session: Option<RoomId>,
    pub agent: Option<AgentId>,
    pub root: Option<Box<str>>,
}

impl Filter {
    /// Returns whether the message passes the filters. A `sync` or `resync` message ignores the agent filter
    /// and, if it belongs to no room, the project-root filter. The session filter always applies.
    fn passes(&self, message: &UiMessage) -> bool {
        let sync = matches!(message.phase, Some("sync" | "resync"));
        let matches =
            |filter: Option<&str>, actual: Option<&str>| filter.is_none_or(|filter| Some(filter) == actual);
        let session = matches(self.session.as_ref().map(RoomId::as_str), message.session_id);
        let anywhere = sync && message.session_id.is_none();
        let session = session && (anywhere || matches(self.root.as_deref(), message.project_root));
        session && (sync || matches(self.agent.as_ref().map(AgentId::as_str), message.agent_id))
    }
}

/// Encodes an event. Empty if this protocol has no message for it or `filter` excludes it. `root` is the
/// project root of its room.
pub fn event(logged_event: &LoggedEvent, epoch: Epoch, filter: &Filter, root: Option<&str>) -> Vec<String> {
    let parts = parts(logged_event).into_iter().map(|message| message.with_root(root));
    let numbered =
        (0..).zip(parts).map(|(part, message)| (Ordinal::of(logged_event.seq).part(part), message));
    let passed: Vec<_> = numbered.filter(|(_, message)| filter.passes(message)).collect();
    let (last, position) = (passed.len(), Position { epoch, seq: logged_event.seq });
    let written = (1..).zip(passed).map(|(index, (ordinal, message))| {
        message.write(filter.form, ordinal, logged_event.at, (index == last).then_some(position))
    });
    written.collect()
}

/// Encodes the last message of an earlier event that is still current, such as an open approval, for a late
/// joiner. The message gets the ordinal of `stamp` and no position.
pub fn replay(
    logged_event: &LoggedEvent,
    stamp: SignalStamp,
    filter: &Filter,
    root: Option<&str>,
) -> Option<String> {
    let message = parts(logged_event)
        .pop()
        .map(|message| message.with_root(root))
        .filter(|message| filter.passes(message))?;
    Some(message.write(filter.form, stamp.ordinal, logged_event.at, None))
}

/// Encodes the position of a subscriber, without a message.
pub fn position(position: Position, form: StreamFormat) -> String {
    match form {
        StreamFormat::Block => format!("id: {position}\n\n"),
        StreamFormat::Frame => format!(r#"{{"type":"server:events_subscribed","position":"{position}"}}"#),
    }
}

/// Encodes the loss of access to a room. Uses the last ordinal of the event, after all its other messages.
pub fn room_lost(room: &RoomId, by: &LoggedEvent, filter: &Filter, root: Option<&str>) -> Option<String> {
    let message = UiMessage::new(format!("room-lost-{}", by.seq), "room")
        .phase("removed")
        .in_room(room)
        .with_root(root);
    let last = Ordinal::of(by.seq).part(Ordinal::MAX_PARTS - 1);
    filter.passes(&message).then(|| message.write(filter.form, last, by.at, None))
}

/// Encodes the request to reload all state, because messages were lost that cannot be replayed. `lost` is
/// their number, if known.
pub fn resync(
    reason: &str,
    lost: Option<u64>,
    position: Option<Position>,
    stamp: SignalStamp,
    form: StreamFormat,
) -> String {
    let mut data = json!({ "reason": reason, "lagged_count": lost });
    if let Some(position) = position {
        data["position"] = position.to_string().into();
    }
    let message = UiMessage::new(format!("run-resync-{}", stamp.ordinal.0), "run").phase("resync");
    message.text("Resync required").data(data).write(form, stamp.ordinal, stamp.at, None)
}

/// Returns the messages of an event, in order; fewer than [`Ordinal::MAX_PARTS`].
fn parts(logged_event: &LoggedEvent) -> Vec<UiMessage<'_>> {
    let named = |name: &str| format!("{name}-{}", logged_event.seq);
    let sync = |room| refresh(room, logged_event);
    let of_message = |name, room, message| marked(name, room, message, logged_event);
    match &logged_event.event {
        Event::MessagePosted { message, .. } => posted(message),
        Event::MessageEdited(message) => posted(message)
            .into_iter()
            .filter(|part| part.kind == "message")
            .map(|part| edited(part, logged_event))
            .collect(),
        Event::MessageDeleted { room, message } => vec![of_message("deleted", room, message)],
        Event::MessagePinned(pin) => vec![of_message("pinned", &pin.room, &pin.message)],
        Event::MessageUnpinned { room, message } => vec![of_message("unpinned", room, message)],
        Event::BookmarkChanged { room, message, kept, .. } => {
            vec![of_message(if *kept { "bookmarked" } else { "unbookmarked" }, room, message)]
        }
        Event::ReactionsChanged { room, message, reactions } => {
            let encode = |reaction: &parlor_model::Reaction| {
                let ids: Vec<&str> = reaction.people.iter().map(|person| person.user.as_str()).collect();
                let names: Vec<&str> = reaction.people.iter().map(|person| &*person.username).collect();
                json!({ "emoji": reaction.emoji, "user_ids": ids, "usernames": names })
            };
            let reactions: Vec<Value> = reactions.iter().map(encode).collect();
            let data = json!({ "message_id": message.as_str(), "reactions": reactions });
            vec![UiMessage::new(named("reaction"), "reaction").in_room(room).data(data)]
        }
        Event::RoomRead { room, user, username, at } => {
            let data = json!({ "user_id": user.as_str(), "username": username, "read_at": iso(*at) });
            vec![UiMessage::new(named("receipt"), "receipt").in_room(room).data(data)]
        }
        Event::RoomChanged(room) => {
            let message = UiMessage::new(named("room"), "room").phase("changed").in_room(&room.id);
            vec![message.data(json!({ "room": about_room(room) })), sync(Some(&room.id))]
        }
        Event::MembersChanged { room, change, members } => {
            let (change, member) = match change {
                MemberChange::Added(member) => ("added", member),
                MemberChange::Changed(member) => ("changed", member),
                MemberChange::Removed(member) => ("removed", member),
            };
            let members: Vec<Value> = members.iter().map(about_member).collect();
            let data = json!({
                "room": about_room(room), "change": change, "member": member_id(member), "members": members,
            });
            let message = UiMessage::new(named("room"), "room").phase("members").in_room(&room.id).data(data);
            vec![message, sync(Some(&room.id))]
        }
        Event::RoomRemoved { room, .. } => {
            vec![UiMessage::new(named("room"), "room").phase("removed").in_room(room), sync(Some(room))]
        }
        Event::RoomPreferencesChanged(member) => {
            let own = &member.room_preferences;
            let data = json!({
                "pinned": own.pinned_at.is_some(),
                "archived": own.archived_at.is_some(),
                "notifications": own.notifications.as_str(),
            });
            vec![UiMessage::new(named("room"), "room").phase("arranged").in_room(&member.room).data(data)]
        }
        Event::RoomCleared { room, .. } => {
            vec![UiMessage::new(named("room"), "room").phase("cleared").in_room(room)]
        }
        Event::TaskChanged(task) => {
            let message = UiMessage::new(named("task"), "task").phase("changed").in_room(&task.room);
            vec![message.text(&task.title).data(about_task(task)), sync(Some(&task.room))]
        }
        Event::TaskRemoved { room, task } => {
            let message = UiMessage::new(named("task"), "task").phase("removed").in_room(room);
            vec![message.data(json!({ "id": task.as_str() })), sync(Some(room))]
        }
        Event::AgentChanged { agent, .. } => {
            vec![UiMessage { agent_id: Some(agent.id.as_str()), ..sync(None) }]
        }
        // An event read from the log has no stored audience, so the message does not name the agent.
        Event::AgentRemoved { .. } | Event::UserChanged { .. } | Event::SettingsChanged => vec![sync(None)],
        Event::RunChanged(run) => ended(run, logged_event),
        Event::PlanChanged(plan) => vec![planned(plan)],
        Event::ApprovalAsked(approval) => asked(approval).into_iter().collect(),
        Event::ApprovalDecided(approval) => vec![decided(approval)],
        Event::UserRemoved(_)
        | Event::SignInsEnded(_)
        | Event::SignInEnded { .. }
        | Event::KeyRevoked { .. }
        | Event::Tombstone => Vec::new(),
    }
}

fn refresh<'a>(room: Option<&'a RoomId>, logged_event: &LoggedEvent) -> UiMessage<'a> {
    let message = UiMessage::new(format!("run-sync-{}", logged_event.seq), "run").phase("sync");
    UiMessage { session_id: room.map(RoomId::as_str), ..message.text("State updated") }
}

fn marked<'a>(
    how: &'static str,
    room: &'a RoomId,
    message: &MessageId,
    logged_event: &LoggedEvent,
) -> UiMessage<'a> {
    let data = json!({ "message_id": message.as_str() });
    UiMessage::new(format!("msg-{how}-{}", logged_event.seq), "message").phase(how).in_room(room).data(data)
}

/// Encodes a posted message. The reply of a run also ends its token stream and is repeated as a text segment.
fn posted(message: &Message) -> Vec<UiMessage<'_>> {
    let Some(room) = message.destination.room() else { return Vec::new() };
    let addressed = message.mentions.iter().find_map(|mention| mention.member.agent());
    let (from, role, agent) = match &message.sender {
        Sender::Agent(agent) => (agent.as_str(), "assistant", Some(agent)),
        Sender::User(_) => ("user", "user", addressed),
        Sender::Source(name) => (&**name, "user", addressed),
    };
    let mut data = json!({
        "message_id": message.id.as_str(),
        "from": from,
        "role": role,
        "name": message.sender_name,
        "sender_id": message.sender.id(),
        "sender_type": message.sender.kind(),
    });
    let to = if role == "assistant" { Some("user") } else { addressed.map(AgentId::as_str) };
    let optional = [
        ("to", to.map(Value::from)),
        ("reply_to", message.reply_to.as_ref().map(|id| id.as_str().into())),
        ("run_id", message.run_output.as_ref().map(|output| output.run.as_str().into())),
        ("outcome", message.run_output.as_ref().map(|output| output.outcome.as_str().into())),
        ("attachments", attachments(message)),
        ("relayed", message.relayed.as_deref().map(|relayed| json!(RelayedFrame::from(relayed)))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            data[name] = value;
        }
    }
    let with_agent = |part| match agent {
        Some(agent) => UiMessage::by_agent(part, agent),
        None => part,
    };
    let whole = UiMessage::new(format!("msg-{}", message.id), "message").in_room(room).text(&message.text);
    let whole = with_agent(whole.data(data));
    let Some(output) = &message.run_output else {
        return idle_prompt(message, room).into_iter().chain([whole]).collect();
    };
    let run = json!({ "run_id": output.run.as_str(), "message_id": message.id.as_str() });
    let end = UiMessage::new(format!("token-{}-done", output.run), "token").phase("done").text("");
    let segment = UiMessage::new(format!("text-seg-{}", message.id), "text_segment").text(&message.text);
    vec![with_agent(end.in_room(room).data(run.clone())), with_agent(segment.in_room(room).data(run)), whole]
}

/// Encodes the activity of an idle prompt, if the message is a prompt of a mission.
fn idle_prompt<'a>(message: &'a Message, room: &'a RoomId) -> Option<UiMessage<'a>> {
    let (agent, mission) = mission::of(message)?;
    let data = json!({ "status": "idle_prompt_triggered", "mission_id": mission });
    let activity = UiMessage::new(format!("idle-trigger-{}", message.id), "activity").phase("doing");
    Some(activity.text("Idle prompt triggered").in_room(room).by_agent(agent).data(data))
}

fn edited<'a>(part: UiMessage<'a>, logged_event: &LoggedEvent) -> UiMessage<'a> {
    UiMessage { id: format!("msg-edit-{}", logged_event.seq), phase: Some("edited"), ..part }
}

fn attachments(message: &Message) -> Option<Value> {
    let encode = |attachment: &parlor_model::Attachment| {
        let file = &attachment.file;
        json!({
            "id": attachment.id.as_str(), "name": file.name, "content_type": file.media.as_str(), "size": file.size,
        })
    };
    (!message.attachments.is_empty()).then(|| message.attachments.iter().map(encode).collect())
}

/// Encodes the end of a run. An event read from the log carries the current state of its run, so the event of
/// the start shows an ended run too; only the event whose time is `ended_at` is encoded.
fn ended<'a>(run: &'a Run, logged_event: &LoggedEvent) -> Vec<UiMessage<'a>> {
    let RunState::Ended(outcome) = &run.state else { return Vec::new() };
    if run.ended_at != Some(logged_event.at) {
        return Vec::new();
    }
    let milliseconds = |started: parlor_model::Time| (logged_event.at.0 - started.0).max(0) / 1000;
    let duration_ms = run.started_at.map(milliseconds);
    let message = |id: String, kind| UiMessage::new(id, kind).in_room(&run.room).by_agent(&run.agent);
    let mut result = json!({
        "type": "none", "status": status(outcome), "handled": duration_ms.is_some(),
    });
    if let Some(reason) = outcome.reason() {
        result["reason"] = reason.into();
    }
    let mut data = json!({ "outcome": result, "run_id": run.id.as_str() });
    if let Some(trigger) = &run.trigger {
        data["message_id"] = trigger.as_str().into();
    }
    let ended =
        message(format!("run-outcome-{}", run.id), "run").phase("outcome").text("Run outcome").data(data);
    if duration_ms.is_none() {
        return vec![ended];
    }
    let idle = json!({ "status": "idle", "run_id": run.id.as_str(), "parent_id": null });
    let idle = message(format!("act-{}", run.id), "activity").phase("done").data(idle);
    let tokens = run.usage.input_tokens + run.usage.output_tokens;
    let complete = json!({
        "run_id": run.id.as_str(),
        "duration_ms": duration_ms,
        "context_tokens": (tokens > 0).then_some(tokens),
        "parent_id": run.parent.as_ref().map(|parent| parent.as_str()),
    });
    let complete = message(format!("turn-complete-{}", run.id), "turn_complete").data(complete);
    vec![idle, ended, complete]
}

/// Returns the name of a run outcome in this protocol.
pub fn status(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Complete => "completed",
        RunOutcome::Failed(_) => "failed",
        RunOutcome::Cancelled => "cancelled",
        RunOutcome::Interrupted => "interrupted",
        RunOutcome::Refused(_) => "refused",
    }
}

fn planned(plan: &CurrentPlan) -> UiMessage<'_> {
    let data = json!({ "plan": standing(plan), "run_id": plan.run.as_str() });
    let message = UiMessage::new(format!("run-plan-{}", plan.run), "run").phase("plan_update").rev(plan.rev);
    message.text("Plan updated").in_room(&plan.room).by_agent(&plan.agent).data(data)
}

/// Encodes a current plan, with the text as edited by a user.
pub fn standing(plan: &CurrentPlan) -> Value {
    let mut encoded = plan_data(&plan.plan);
    if let Some(text) = &plan.text {
        encoded["plan_text"] = (&**text).into();
    }
    encoded
}

fn asked(approval: &Approval) -> Option<UiMessage<'_>> {
    let ApprovalSubject::Tool(input) = &approval.subject else {
        let data = json!({
            "question_id": approval.id.as_str(),
            "run_id": approval.run.as_str(),
            "agent_name": approval.agent_name,
            "questions": answers::asked(approval),
            "expires_at": iso(approval.expires_at),
        });
        let message = UiMessage::new(format!("ask-user-{}", approval.id), "ask_user");
        let message = message.in_room(&approval.room).by_agent(&approval.agent).data(data);
        return approval.decision.is_none().then_some(message);
    };
    let input: Value = serde_json::from_str(&input.0).unwrap_or_default();
    let data = json!({
        "request_id": approval.id.as_str(),
        "run_id": approval.run.as_str(),
        "agent_name": approval.agent_name,
        "tool": approval.tool,
        "input": input,
        "input_digest": approval.digest.to_string(),
        "expires_at": iso(approval.expires_at),
    });
    let message = UiMessage::new(format!("approval-{}", approval.id), "approval").phase("asked");
    approval.decision.is_none().then(|| message.in_room(&approval.room).by_agent(&approval.agent).data(data))
}

fn decided(approval: &Approval) -> UiMessage<'_> {
    if approval.subject.kind() == ApprovalKind::Questions {
        let status = approval.decision.as_ref().map_or("withdrawn", decisions::question_set);
        let mut data = json!({
            "question_id": approval.id.as_str(), "run_id": approval.run.as_str(), "status": status,
        });
        if let Some(Decision::Answered { by, answers }) = &approval.decision {
            data["answers"] = json!(answers.iter().map(QuestionAnswer::from).collect::<Vec<_>>());
            data["answered_by"] = by.user.as_str().into();
            data["answered_by_name"] = (*by.name).into();
        }
        let message = UiMessage::new(format!("ask-user-{}", approval.id), "ask_user");
        return message.phase("resolved").rev(2).in_room(&approval.room).by_agent(&approval.agent).data(data);
    }
    let mut data = json!({
        "request_id": approval.id.as_str(),
        "run_id": approval.run.as_str(),
        // Default deny: an approval without a decision is reported as denied.
        "decision": approval.decision.as_ref().map_or("deny", decisions::permission),
    });
    if let Some(Decision::Allowed { by } | Decision::Denied { by, .. }) = &approval.decision {
        data["decided_by"] = by.user.as_str().into();
        data["decided_by_name"] = (*by.name).into();
    }
    let message = UiMessage::new(format!("approval-{}", approval.id), "approval").phase("resolved").rev(2);
    message.in_room(&approval.room).by_agent(&approval.agent).data(data)
}

fn about_room(room: &Room) -> Value {
    json!({
        "id": room.id.as_str(),
        "name": room.name,
        "kind": room.kind.as_str(),
        "policy": room.policy.as_str(),
        "frozen": room.is_frozen(),
        "project_root": room.project_root,
    })
}

fn member_id(member: &MemberId) -> Value {
    let kind = if member.user().is_some() { "user" } else { "agent" };
    json!({ "id": member.as_str(), "type": kind })
}

fn about_member(member: &Member) -> Value {
    let mut about = member_id(&member.member);
    about["name"] = (*member.name).into();
    about["role"] = member.role.as_str().into();
    about
}

fn about_task(task: &Task) -> Value {
    let mut about = json!({
        "id": task.id.as_str(),
        "title": task.title,
        "status": task.status.as_str(),
        "created_by": member_id(&task.created_by),
    });
    if let Some(assignee) = &task.assignee {
        about["assignee"] = member_id(assignee);
    }
    about
}
