//! Frames of `/ws/broker`: requests of programs, and the answers, refusals and pushes of the hub.
//!
//! Each request is one row of a table with the types of its answer and of its refusal. Payloads, `reqId` and the
//! settings of an agent have any form; they stay raw JSON.

#![allow(
    unreachable_patterns,
    reason = "requests of one namespace share the types of their answers and refusals"
)]

pub mod hub;
pub mod program;
pub mod sessions;
pub mod tools;

use crate::frames::frames;
use hub::*;
use program::*;
use serde::Serialize;
use serde_json::value::RawValue;
use sessions::*;
use tools::*;
#[cfg(test)]
use ts_rs::TS;

/// Defines the requests, and for each request the answer and the refusal with the same variant name.
macro_rules! requests {
    ($life:lifetime { $($(#[$doc:meta])* $variant:ident($body:ty) = $type:tt => $answer:ty = $ok:tt, $refused:tt;)+ }) => {
        frames! {
            /// A request of a program.
            #[cfg_attr(test, derive(TS))]
            pub enum ProgramFrame<$life> { $($(#[$doc])* $variant($body) = $type,)+ }
        }

        frames! {
            /// The answer to a request.
            #[cfg_attr(test, derive(TS))]
            pub enum Answer<$life> { $($variant($answer) = $ok,)+ }
        }

        frames! {
            /// The refusal of a request.
            #[cfg_attr(test, derive(TS))]
            pub enum Refused<$life> { $($variant(Failure<$life>) = $refused,)+ }
        }

        /// Type of a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RequestType { $($variant,)+ }

        impl RequestType {
            /// `None` if the type is unknown.
            pub fn parse(kind: &str) -> Option<Self> {
                Some(match kind {
                    $($type => Self::$variant,)+
                    _ => return None,
                })
            }
        }

        impl<$life> ProgramFrame<$life> {
            pub fn request_type(&self) -> RequestType {
                match self { $(Self::$variant(_) => RequestType::$variant,)+ }
            }

            pub fn req_id(&self) -> Option<&$life RawValue> {
                match self { $(Self::$variant(body) => body.req_id,)+ }
            }
        }

        impl<$life> Answer<$life> {
            pub fn req_id(&self) -> Option<&$life RawValue> {
                match self { $(Self::$variant(body) => body.req_id,)+ }
            }
        }

        impl<$life> Refused<$life> {
            pub fn new(request: RequestType, failure: Failure<$life>) -> Self {
                match request { $(RequestType::$variant => Self::$variant(failure),)+ }
            }

            pub fn into_failure(self) -> Failure<$life> {
                match self { $(Self::$variant(failure) => failure,)+ }
            }
        }
    };
}

requests! { 'a {
    Auth(Auth<'a>) = "auth" => Plain<'a> = "auth.ok", "auth.error";
    Ping(Plain<'a>) = "ping" => Plain<'a> = "pong", "ping.error";
    AgentList(Plain<'a>) = "agent.list" => Agents<'a> = "agent.list.result", "agent.list.error";
    AgentGet(OfAgent<'a>) = "agent.get" => FoundAgent<'a> = "agent.get.result", "agent.get.error";
    AgentCreate(ConfiguredAgent<'a>) = "agent.create" => StoredAgent<'a> = "agent.create.ok", "agent.create.error";
    AgentUpdate(ConfiguredAgent<'a>) = "agent.update" => StoredAgent<'a> = "agent.update.ok", "agent.update.error";
    AgentDelete(OfAgent<'a>) = "agent.delete" => RemovedAgent<'a> = "agent.delete.ok", "agent.delete.error";
    InstructionsGet(OfAgent<'a>) = "agent.claudemd.get" => Instructions<'a> = "agent.claudemd.result", "agent.claudemd.error";
    InstructionsSet(SetInstructions<'a>) = "agent.claudemd.set" => StoredInstructions<'a> = "agent.claudemd.ok", "agent.claudemd.error";
    ToolsList(ToolsOf<'a>) = "agent.tools.list" => Tools<'a> = "agent.tools.list.result", "agent.tools.list.error";
    ToolsRefresh(RefreshTools<'a>) = "agent.tools.refresh" => Plain<'a> = "agent.tools.refresh.ok", "agent.tools.refresh.error";
    ToolExecute(ExecuteTool<'a>) = "agent.tool.execute" => ToolResult<'a> = "agent.tool.result", "agent.tool.error";
    SessionList(SessionsOf<'a>) = "session.list" => Sessions<'a> = "session.list.result", "session.error";
    SessionStart(StartSession<'a>) = "session.start" => OfSession<'a> = "session.started", "session.error";
    SessionContinue(ContinueSession<'a>) = "session.continue" => OfSession<'a> = "session.started", "session.error";
    SessionAbort(AbortSession<'a>) = "session.abort" => OfSession<'a> = "session.aborted", "error";
    StatusActive(ActiveOf<'a>) = "status.active" => ActiveSessions<'a> = "status.active.result", "status.active.error";
    ConversationHistory(ConversationOf<'a>) = "conversation.history" => Conversation<'a> = "conversation.history.result", "conversation.history.error";
    LogsSearch(SearchLogs<'a>) = "logs.search" => LogMatches<'a> = "logs.search.result", "logs.search.error";
    LogsConversations(ConversationsOf<'a>) = "logs.conversations" => Conversations<'a> = "logs.conversations.result", "logs.conversations.error";
    AskUserResponse(AnswerUser<'a>) = "ask-user.response" => AnsweredUser<'a> = "ask-user.response.ok", "ask-user.response.error";
    Rebuild(Plain<'a>) = "rebuild" => Plain<'a> = "rebuild.ok", "rebuild.error";
    Send(Routed<'a>) = "msg.send" => Sent<'a> = "msg.send.ok", "msg.send.error";
    Route(Routed<'a>) = "msg.route" => Posted<'a> = "msg.route.ok", "msg.route.error";
    Broadcast(Routed<'a>) = "msg.broadcast" => Sent<'a> = "msg.broadcast.ok", "msg.broadcast.error";
    Relay(Relay<'a>) = "msg.relay" => Posted<'a> = "msg.relay.ok", "msg.relay.error";
    RoomListen(OfRoom<'a>) = "msg.room.listen" => RoomListening<'a> = "msg.room.listen.ok", "msg.room.listen.error";
    RoomMembers(OfRoom<'a>) = "msg.room.members" => RoomMembers<'a> = "msg.room.members.ok", "msg.room.members.error";
    RoomHistory(RoomPage<'a>) = "msg.room.history" => RoomHistory<'a> = "msg.room.history.ok", "msg.room.history.error";
    Unmatched(Page<'a>) = "msg.unmatched" => DeadLetters<'a> = "msg.unmatched.ok", "msg.unmatched.error";
    UnmatchedClear(Plain<'a>) = "msg.unmatched.clear" => Cleared<'a> = "msg.unmatched.clear.ok", "msg.unmatched.clear.error";
    Ack(Acknowledge<'a>) = "msg.ack" => Acknowledged<'a> = "msg.ack.ok", "msg.ack.error";
    TurnTrigger(TurnTrigger<'a>) = "turn.trigger" => TriggeredTurn<'a> = "turn.trigger.ok", "turn.trigger.error";
    Listen(OfMailbox<'a>) = "msg.listen" => Listening<'a> = "msg.listen.ok", "msg.listen.error";
    Receive(Receive<'a>) = "msg.receive" => Mail<'a> = "msg.receive.ok", "msg.receive.error";
    History(MailboxPage<'a>) = "msg.history" => Mail<'a> = "msg.history.ok", "msg.history.error";
    SubAdd(Subscribe<'a>) = "msg.sub.add" => Subscriptions<'a> = "msg.sub.add.ok", "msg.sub.add.error";
    SubRemove(Subscribe<'a>) = "msg.sub.remove" => Subscriptions<'a> = "msg.sub.remove.ok", "msg.sub.remove.error";
    SubList(OfMailbox<'a>) = "msg.sub.list" => Subscriptions<'a> = "msg.sub.list.ok", "msg.sub.list.error";
    SessionListen(OfMailbox<'a>) = "msg.session.listen" => Listening<'a> = "msg.session.listen.ok", "msg.session.listen.error";
    SessionReceive(Receive<'a>) = "msg.session.receive" => Mail<'a> = "msg.session.receive.ok", "msg.session.receive.error";
    SessionHistory(MailboxPage<'a>) = "msg.session.history" => Mail<'a> = "msg.session.history.ok", "msg.session.history.error";
    SessionSubAdd(Subscribe<'a>) = "msg.session.sub.add" => Subscriptions<'a> = "msg.session.sub.add.ok", "msg.session.sub.add.error";
    SessionSubRemove(Subscribe<'a>) = "msg.session.sub.remove" => Subscriptions<'a> = "msg.session.sub.remove.ok", "msg.session.sub.remove.error";
    SessionSubList(OfMailbox<'a>) = "msg.session.sub.list" => Subscriptions<'a> = "msg.session.sub.list.ok", "msg.session.sub.list.error";
} }

frames! {
    /// A frame of the hub that answers no request, and the refusal of a request of unknown type.
    #[cfg_attr(test, derive(TS))]
    pub enum Push<'a> {
        /// A new copy in the mailbox of an agent.
        Message(MailPush<'a>) = "msg.push",
        /// A new copy in the mailbox of a session.
        SessionMessage(SessionMailPush<'a>) = "msg.session.push",
        /// A new message of a room that the connection follows.
        RoomMessage(RoomPush<'a>) = "msg.room.push",
        /// The members of a room changed.
        RoomChanged(RoomNotice<'a>) = "msg.room.changed",
        /// The account can no longer read a room.
        RoomLost(RoomNotice<'a>) = "msg.room.lost",
        /// A run has started in a session. Its text, tool calls and reports follow.
        SessionTitle(SessionTitle<'a>) = "session.title",
        SessionThinking(SessionText<'a>) = "session.thinking",
        SessionText(SessionText<'a>) = "session.text",
        SessionToolUse(SessionToolUse<'a>) = "session.tool_use",
        SessionToolResult(SessionToolResult<'a>) = "session.tool_result",
        /// The complete reply of a run.
        SessionResult(SessionText<'a>) = "session.result",
        SessionEvent(SessionEvent<'a>) = "session.event",
        SessionDone(SessionDone<'a>) = "session.done",
        /// A run has failed. Also the type of refusals of `session.*`.
        SessionFailed(SessionFailed<'a>) = "session.error",
        SessionStatus(SessionStatus<'a>) = "session.status",
        /// The sessions in which an agent works have changed.
        AgentStatus(AgentActivity<'a>) = "agent.status",
        /// An agent waits for the answer of a user.
        AskUser(AskUser<'a>) = "ask-user",
        Error(Failure<'a>) = "error",
    }
}

/// Any frame of the hub.
#[derive(Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "a frame exists only while it is encoded or decoded")]
pub enum HubFrame<'a> {
    Answer(Answer<'a>),
    Refused(Refused<'a>),
    Push(Push<'a>),
}

impl<'a> HubFrame<'a> {
    /// Parses the body of a frame with this `type`. `None` if the type is unknown.
    pub fn parse(kind: &str, text: &'a str) -> serde_json::Result<Option<Self>> {
        if let Some(push) = Push::parse(kind, text)? {
            return Ok(Some(Self::Push(push)));
        }
        if let Some(answer) = Answer::parse(kind, text)? {
            return Ok(Some(Self::Answer(answer)));
        }
        Ok(Refused::parse(kind, text)?.map(Self::Refused))
    }
}

/// Body of a frame without fields of its own.
#[derive(Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Plain<'a> {
    /// Any JSON value of the program, repeated in the answer.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub req_id: Option<&'a RawValue>,
}
