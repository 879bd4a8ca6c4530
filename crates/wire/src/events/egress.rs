//! Encodes events as messages of the chat-events stream.
//!
//! Owns: only the last message of a logged event carries a position (`id:`). A client that disconnects in the
//! middle of an event therefore receives all its messages again after a resume, with the same ordinals.

mod signals;

pub use signals::signal;

use super::answers::{self, QuestionAnswer};
use super::frames::data::*;
use super::frames::{EventFrame, StreamFormat, Subject, UiMessage};
use crate::frames::encode;
use crate::relayed::RelayedFrame;
use crate::time::iso;
use crate::words::{PermissionResult, QuestionStatus};
use parlor_model::mission;
use parlor_model::{
    AgentId, Approval, ApprovalKind, ApprovalSubject, CurrentPlan, Decision, Epoch, Event, LoggedEvent,
    Member, MemberChange, MemberId, Message, MessageId, Ordinal, Position, Room, RoomId, Run, RunOutcome,
    RunState, Sender, SignalStamp, Task,
};

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
        let sync = matches!(message.subject, Subject::RunSync | Subject::RunResync(_));
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
    let position = Position { epoch, seq: logged_event.seq };
    write_parts(logged_event, root, filter.form, Some(position), |message| filter.passes(message))
}

/// Encodes as frames the messages of an event whose subject `is_wanted`. The last one carries `position`.
pub fn event_frames(
    logged_event: &LoggedEvent,
    root: Option<&str>,
    position: Option<Position>,
    is_wanted: impl Fn(&Subject) -> bool,
) -> Vec<String> {
    write_parts(logged_event, root, StreamFormat::Frame, position, |message| is_wanted(&message.subject))
}

fn write_parts(
    logged_event: &LoggedEvent,
    root: Option<&str>,
    form: StreamFormat,
    position: Option<Position>,
    passes: impl Fn(&UiMessage) -> bool,
) -> Vec<String> {
    let parts = parts(logged_event).into_iter().map(|message| message.with_root(root));
    let numbered =
        (0..).zip(parts).map(|(part, message)| (Ordinal::of(logged_event.seq).part(part), message));
    let passed: Vec<_> = numbered.filter(|(_, message)| passes(message)).collect();
    let last = passed.len();
    let written = (1..).zip(passed).map(|(index, (ordinal, message))| {
        message.write(form, ordinal, logged_event.at, position.filter(|_| index == last))
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
        StreamFormat::Frame => encode(&EventFrame::EventsSubscribed { position: position.to_string() }),
    }
}

/// Encodes the loss of access to a room. Uses the last ordinal of the event, after all its other messages.
pub fn room_lost(room: &RoomId, by: &LoggedEvent, filter: &Filter, root: Option<&str>) -> Option<String> {
    let message =
        UiMessage::new(format!("room-lost-{}", by.seq), Subject::RoomRemoved).in_room(room).with_root(root);
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
    let position = position.map(|position| position.to_string());
    let data = ResyncData { reason, lagged_count: lost, position };
    let message = UiMessage::new(format!("run-resync-{}", stamp.ordinal.0), Subject::RunResync(data));
    message.text("Resync required").write(form, stamp.ordinal, stamp.at, None)
}

/// Returns the messages of an event, in order; fewer than [`Ordinal::MAX_PARTS`].
fn parts(logged_event: &LoggedEvent) -> Vec<UiMessage<'_>> {
    let named = |name: &str| format!("{name}-{}", logged_event.seq);
    let sync = |room| refresh(room, logged_event);
    match &logged_event.event {
        Event::MessagePosted { message, .. } => posted(message),
        Event::MessageEdited(message) => edited(message, logged_event).into_iter().collect(),
        Event::MessageDeleted { room, message } => {
            vec![UiMessage::new(named("msg-deleted"), Subject::MessageDeleted(mark(message))).in_room(room)]
        }
        Event::MessagePinned(pin) => {
            let subject = Subject::MessagePinned(mark(&pin.message));
            vec![UiMessage::new(named("msg-pinned"), subject).in_room(&pin.room)]
        }
        Event::MessageUnpinned { room, message } => {
            vec![UiMessage::new(named("msg-unpinned"), Subject::MessageUnpinned(mark(message))).in_room(room)]
        }
        Event::BookmarkChanged { room, message, kept, .. } => {
            let message = match kept {
                true => UiMessage::new(named("msg-bookmarked"), Subject::MessageBookmarked(mark(message))),
                false => {
                    UiMessage::new(named("msg-unbookmarked"), Subject::MessageUnbookmarked(mark(message)))
                }
            };
            vec![message.in_room(room)]
        }
        Event::ReactionsChanged { room, message, reactions } => {
            let reactions = reactions.iter().map(|reaction| ReactionsOfEmoji {
                emoji: &reaction.emoji,
                user_ids: reaction.people.iter().map(|person| person.user.as_str()).collect(),
                usernames: reaction.people.iter().map(|person| &*person.username).collect(),
            });
            let data = ReactionData { message_id: message.as_str(), reactions: reactions.collect() };
            vec![UiMessage::new(named("reaction"), Subject::Reaction(data)).in_room(room)]
        }
        Event::RoomRead { room, user, username, at } => {
            let data = ReceiptData { user_id: user.as_str(), username, read_at: iso(*at) };
            vec![UiMessage::new(named("receipt"), Subject::Receipt(data)).in_room(room)]
        }
        Event::RoomChanged(room) => {
            let subject = Subject::RoomChanged(RoomChangedData { room: about_room(room) });
            vec![UiMessage::new(named("room"), subject).in_room(&room.id), sync(Some(&room.id))]
        }
        Event::MembersChanged { room, change, members } => {
            let (change, member) = match change {
                MemberChange::Added(member) => ("added", member),
                MemberChange::Changed(member) => ("changed", member),
                MemberChange::Removed(member) => ("removed", member),
            };
            let members = members.iter().map(about_member).collect();
            let data =
                RoomMembersData { room: about_room(room), change, member: member_ref(member), members };
            let message = UiMessage::new(named("room"), Subject::RoomMembers(data)).in_room(&room.id);
            vec![message, sync(Some(&room.id))]
        }
        Event::RoomRemoved { room, .. } => {
            vec![UiMessage::new(named("room"), Subject::RoomRemoved).in_room(room), sync(Some(room))]
        }
        Event::RoomPreferencesChanged(member) => {
            let own = &member.room_preferences;
            let data = RoomArrangedData {
                pinned: own.pinned_at.is_some(),
                archived: own.archived_at.is_some(),
                notifications: own.notifications.as_str(),
            };
            vec![UiMessage::new(named("room"), Subject::RoomArranged(data)).in_room(&member.room)]
        }
        Event::RoomCleared { room, .. } => {
            vec![UiMessage::new(named("room"), Subject::RoomCleared).in_room(room)]
        }
        Event::TaskChanged(task) => {
            let message = UiMessage::new(named("task"), Subject::TaskChanged(about_task(task)));
            vec![message.in_room(&task.room).text(&*task.title), sync(Some(&task.room))]
        }
        Event::TaskRemoved { room, task } => {
            let subject = Subject::TaskRemoved(TaskRemovedData { id: task.as_str() });
            vec![UiMessage::new(named("task"), subject).in_room(room), sync(Some(room))]
        }
        Event::AgentChanged { agent, .. } => vec![sync(None).by_agent(&agent.id)],
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
        | Event::TokensRevoked { .. }
        | Event::Tombstone => Vec::new(),
    }
}

fn refresh<'a>(room: Option<&'a RoomId>, logged_event: &LoggedEvent) -> UiMessage<'a> {
    let message = UiMessage::new(format!("run-sync-{}", logged_event.seq), Subject::RunSync);
    UiMessage { session_id: room.map(RoomId::as_str), ..message.text("State updated") }
}

fn mark(message: &MessageId) -> MarkData<'_> {
    MarkData { message_id: message.as_str() }
}

/// Encodes a posted message. The reply of a run also ends its token stream and is repeated as a text segment.
fn posted(message: &Message) -> Vec<UiMessage<'_>> {
    let Some(room) = message.destination.room() else { return Vec::new() };
    let whole = about_message(message, room, format!("msg-{}", message.id), Subject::Message);
    let Some(output) = &message.run_output else {
        return idle_prompt(message, room).into_iter().chain([whole]).collect();
    };
    let data = ReplyData { run_id: output.run.as_str(), message_id: message.id.as_str() };
    let of_reply = |id: String, subject, text| UiMessage {
        agent_id: whole.agent_id,
        ..UiMessage::new(id, subject).in_room(room).text(text)
    };
    let end = of_reply(format!("token-{}-done", output.run), Subject::TokensDone(data), "");
    let segment = of_reply(format!("text-seg-{}", message.id), Subject::TextSegment(data), &*message.text);
    vec![end, segment, whole]
}

fn edited<'a>(message: &'a Message, logged_event: &LoggedEvent) -> Option<UiMessage<'a>> {
    let id = format!("msg-edit-{}", logged_event.seq);
    Some(about_message(message, message.destination.room()?, id, Subject::MessageEdited))
}

fn about_message<'a>(
    message: &'a Message,
    room: &'a RoomId,
    id: String,
    subject: impl FnOnce(MessageData<'a>) -> Subject<'a>,
) -> UiMessage<'a> {
    let addressed = message.mentions.iter().find_map(|mention| mention.member.agent());
    let (from, role, agent) = match &message.sender {
        Sender::Agent(agent) => (agent.as_str(), "assistant", Some(agent)),
        Sender::User(_) => ("user", "user", addressed),
        Sender::Source(name) => (&**name, "user", addressed),
    };
    let output = message.run_output.as_deref();
    let data = MessageData {
        message_id: message.id.as_str(),
        from,
        role,
        name: &message.sender_name,
        sender_id: message.sender.id(),
        sender_type: message.sender.kind(),
        to: if role == "assistant" { Some("user") } else { addressed.map(AgentId::as_str) },
        reply_to: message.reply_to.as_ref().map(MessageId::as_str),
        run_id: output.map(|output| output.run.as_str()),
        outcome: output.map(|output| output.outcome.as_str()),
        attachments: attachments(message),
        relayed: message.relayed.as_deref().map(RelayedFrame::from),
    };
    let message = UiMessage::new(id, subject(data)).in_room(room).text(&*message.text);
    UiMessage { agent_id: agent.map(AgentId::as_str), ..message }
}

/// Encodes the activity of an idle prompt, if the message is a prompt of a mission.
fn idle_prompt<'a>(message: &'a Message, room: &'a RoomId) -> Option<UiMessage<'a>> {
    let (agent, mission_id) = mission::of(message)?;
    let data = IdlePromptData { status: "idle_prompt_triggered", mission_id };
    let activity = UiMessage::new(format!("idle-trigger-{}", message.id), Subject::IdlePrompt(data));
    Some(activity.text("Idle prompt triggered").in_room(room).by_agent(agent))
}

fn attachments(message: &Message) -> Option<Vec<AttachmentData<'_>>> {
    let attachments = message.attachments.iter().map(|attachment| AttachmentData {
        id: attachment.id.as_str(),
        name: &attachment.file.name,
        content_type: attachment.file.media.as_str(),
        size: attachment.file.size,
    });
    (!message.attachments.is_empty()).then(|| attachments.collect())
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
    let message = |id: String, subject| UiMessage::new(id, subject).at(&run.place).by_agent(&run.agent);
    let result = RunResult {
        kind: "none",
        status: status(outcome),
        handled: duration_ms.is_some(),
        reason: outcome.reason(),
    };
    let message_id = run.message().map(MessageId::as_str);
    let data = RunOutcomeData { outcome: result, run_id: run.id.as_str(), message_id };
    let ended = message(format!("run-outcome-{}", run.id), Subject::RunOutcome(data)).text("Run outcome");
    let Some(duration_ms) = duration_ms else { return vec![ended] };
    let idle = ActivityData { status: ActivityStatus::Idle, run_id: run.id.as_str(), parent_id: None };
    let idle = message(format!("act-{}", run.id), Subject::ActivityDone(idle));
    let tokens = run.usage.input_tokens + run.usage.output_tokens;
    let complete = TurnCompleteData {
        run_id: run.id.as_str(),
        duration_ms,
        context_tokens: (tokens > 0).then_some(tokens),
        parent_id: run.parent.as_ref().map(|parent| parent.as_str()),
    };
    let complete = message(format!("turn-complete-{}", run.id), Subject::TurnComplete(complete));
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
    let data = PlanUpdateData { plan: standing(plan), run_id: plan.run.as_str() };
    let message = UiMessage::new(format!("run-plan-{}", plan.run), Subject::PlanUpdate(data)).rev(plan.rev);
    message.text("Plan updated").in_room(&plan.room).by_agent(&plan.agent)
}

/// Encodes a current plan, with the text as edited by a user.
pub fn standing(current: &CurrentPlan) -> PlanData<'_> {
    let items = current.plan.steps.iter().map(|step| PlanItem {
        title: &step.title,
        description: step.description.as_deref(),
        status: step.state.into(),
    });
    PlanData {
        summary: &current.plan.summary,
        items: items.collect(),
        status: current.plan.state.into(),
        plan_text: current.text.as_deref().or(current.plan.text.as_deref()),
    }
}

/// Encodes an open approval or question set; `None` if it is decided.
fn asked(approval: &Approval) -> Option<UiMessage<'_>> {
    if approval.decision.is_some() {
        return None;
    }
    let (id, run_id, agent_name) = (approval.id.as_str(), approval.run.as_str(), &*approval.agent_name);
    let expires_at = iso(approval.expires_at);
    let message = match &approval.subject {
        ApprovalSubject::Questions(_) => {
            let questions = answers::asked(approval);
            let data = QuestionsAskedData { question_id: id, run_id, agent_name, questions, expires_at };
            UiMessage::new(format!("ask-user-{id}"), Subject::QuestionsAsked(data))
        }
        ApprovalSubject::Tool(input) => {
            let data = ApprovalAskedData {
                request_id: id,
                run_id,
                agent_name,
                tool: &approval.tool,
                input: serde_json::from_str(&input.0).unwrap_or_default(),
                input_digest: approval.digest.to_string(),
                expires_at,
            };
            UiMessage::new(format!("approval-{id}"), Subject::ApprovalAsked(data))
        }
    };
    Some(message.at(&approval.place).by_agent(&approval.agent))
}

fn decided(approval: &Approval) -> UiMessage<'_> {
    let (id, run_id, decision) = (approval.id.as_str(), approval.run.as_str(), approval.decision.as_ref());
    let message = match approval.subject.kind() {
        ApprovalKind::Questions => {
            let (by, answers) = match decision {
                Some(Decision::Answered { by, answers }) => (Some(by), Some(answers)),
                _ => (None, None),
            };
            let data = QuestionsResolvedData {
                question_id: id,
                run_id,
                status: QuestionStatus::of(decision),
                answers: answers.map(|answers| answers.iter().map(QuestionAnswer::from).collect()),
                answered_by: by.map(|by| by.user.as_str()),
                answered_by_name: by.map(|by| &*by.name),
            };
            UiMessage::new(format!("ask-user-{id}"), Subject::QuestionsResolved(data))
        }
        ApprovalKind::Tool => {
            let by = match decision {
                Some(Decision::Allowed { by } | Decision::Denied { by, .. }) => Some(by),
                _ => None,
            };
            let data = ApprovalResolvedData {
                request_id: id,
                run_id,
                decision: PermissionResult::of(decision),
                decided_by: by.map(|by| by.user.as_str()),
                decided_by_name: by.map(|by| &*by.name),
            };
            UiMessage::new(format!("approval-{id}"), Subject::ApprovalResolved(data))
        }
    };
    message.rev(2).at(&approval.place).by_agent(&approval.agent)
}

fn about_room(room: &Room) -> RoomData<'_> {
    RoomData {
        id: room.id.as_str(),
        name: &room.name,
        kind: room.kind.as_str(),
        policy: room.policy.as_str(),
        frozen: room.is_frozen(),
        project_root: room.project_root.as_deref(),
    }
}

fn member_ref(member: &MemberId) -> MemberRef<'_> {
    MemberRef { id: member.as_str(), kind: if member.user().is_some() { "user" } else { "agent" } }
}

fn about_member(member: &Member) -> MemberData<'_> {
    let MemberRef { id, kind } = member_ref(&member.member);
    MemberData { id, kind, name: &member.name, role: member.role.as_str() }
}

fn about_task(task: &Task) -> TaskData<'_> {
    TaskData {
        id: task.id.as_str(),
        title: &task.title,
        status: task.status.as_str(),
        created_by: member_ref(&task.created_by),
        assignee: task.assignee.as_ref().map(member_ref),
    }
}
