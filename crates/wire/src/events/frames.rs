//! The message type of the chat-events stream, and its encoding for SSE and WebSocket.

pub mod data;

use crate::frames::encode_about;
use data::*;
use parlor_model::{AgentId, Ordinal, Position, RoomId, RunPlace, SessionId, Time};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

/// Defines the subjects of messages: kind, phase, the type of `data`, and whether a client that follows all its rooms on
/// `/ws/client` receives the subject in a `frame` of AgentIM or as an `event`.
macro_rules! subjects {
    (@frame) => { true };
    (@event) => { false };
    ($(#[$meta:meta])* pub enum $name:ident<$life:lifetime> {
        $($(#[$doc:meta])* $variant:ident $(($data:ident: $type:ty))? = $kind:literal $(/ $phase:literal)? => $sent:ident,)+
    }) => {
        $(#[$meta])*
        pub enum $name<$life> {
            $($(#[$doc])* $variant $(($type))?,)+
        }

        impl $name<'_> {
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind,)+ }
            }

            pub fn phase(&self) -> Option<&'static str> {
                let phases: &[&'static str] = match self { $(Self::$variant { .. } => &[$($phase)?],)+ };
                phases.first().copied()
            }

            /// Whether a frame of AgentIM contains everything that a client needs to know of the subject.
            pub fn has_frame(&self) -> bool {
                match self { $(Self::$variant { .. } => subjects!(@$sent),)+ }
            }

            fn serialize_data<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $(Self::$variant $(($data))? => { $(map.serialize_entry("data", $data)?;)? })+
                }
                Ok(())
            }
        }

        #[cfg(test)]
        impl<$life> TS for $name<$life> {
            type WithoutGenerics = $name<'static>;
            type OptionInnerType = Self;

            fn name(_: &ts_rs::Config) -> String {
                stringify!($name).into()
            }

            fn inline(config: &ts_rs::Config) -> String {
                let variants = [$({
                    let phase: &[&str] = &[$($phase)?];
                    let phase = phase.first().map_or("phase?: undefined".to_owned(), |phase| format!("phase: {phase:?}"));
                    let data: &[String] = &[$(<$type as TS>::name(config))?];
                    let data = data.first().map_or("data?: undefined".to_owned(), |data| format!("data: {data}"));
                    format!("{{ kind: {:?}, {phase}, {data} }}", $kind)
                },)+];
                variants.join(" | ")
            }

            fn inline_flattened(config: &ts_rs::Config) -> String {
                format!("({})", Self::inline(config))
            }

            fn visit_dependencies(visitor: &mut impl ts_rs::TypeVisitor)
            where
                Self: 'static,
            {
                $($(visitor.visit::<$type>();)?)+
            }
        }
    };
}

subjects! {
    /// Subject of a message. Some subjects have the same kind and phase and differ in their data.
    #[derive(Debug)]
    pub enum Subject<'a> {
        Message(data: MessageData<'a>) = "message" => frame,
        MessageEdited(data: MessageData<'a>) = "message" / "edited" => frame,
        MessageDeleted(data: MarkData<'a>) = "message" / "deleted" => frame,
        MessagePinned(data: MarkData<'a>) = "message" / "pinned" => frame,
        MessageUnpinned(data: MarkData<'a>) = "message" / "unpinned" => frame,
        MessageBookmarked(data: MarkData<'a>) = "message" / "bookmarked" => frame,
        MessageUnbookmarked(data: MarkData<'a>) = "message" / "unbookmarked" => frame,
        MessagesRewound(data: RewoundData<'a>) = "message" / "rewound" => frame,
        Reaction(data: ReactionData<'a>) = "reaction" => frame,
        Receipt(data: ReceiptData<'a>) = "receipt" => frame,
        RoomChanged(data: RoomChangedData<'a>) = "room" / "changed" => frame,
        RoomMembers(data: RoomMembersData<'a>) = "room" / "members" => frame,
        RoomRemoved = "room" / "removed" => frame,
        RoomArranged(data: RoomArrangedData) = "room" / "arranged" => frame,
        RoomCleared = "room" / "cleared" => frame,
        TaskChanged(data: TaskData<'a>) = "task" / "changed" => frame,
        TaskRemoved(data: TaskRemovedData<'a>) = "task" / "removed" => frame,
        /// State may have changed that no other message reports.
        RunSync = "run" / "sync" => event,
        /// Messages were lost that cannot be replayed: the client reloads all state.
        RunResync(data: ResyncData<'a>) = "run" / "resync" => event,
        RunOutcome(data: RunOutcomeData<'a>) = "run" / "outcome" => event,
        PlanUpdate(data: PlanUpdateData<'a>) = "run" / "plan_update" => event,
        ContextUsage(data: ContextUsageData<'a>) = "run" / "context_usage" => event,
        SubagentSpawned(data: SubagentSpawnedData<'a>) = "run" / "subagent_spawned" => event,
        SubagentResult(data: SubagentResultData<'a>) = "run" / "subagent_result" => event,
        ChangeReport(data: ChangeReportData<'a>) = "run" / "change_report" => event,
        TurnComplete(data: TurnCompleteData<'a>) = "turn_complete" => event,
        ActivityDoing(data: ActivityData<'a>) = "activity" / "doing" => event,
        ActivityDone(data: ActivityData<'a>) = "activity" / "done" => event,
        IdlePrompt(data: IdlePromptData<'a>) = "activity" / "doing" => event,
        Queue(data: QueueData) = "queue" => event,
        ToolProgress(data: ToolProgressData<'a>) = "tool_progress" => event,
        ModelFallback(data: ModelFallbackData<'a>) = "model_fallback" => event,
        Token(data: TokenData<'a>) = "token" => frame,
        TokensDone(data: ReplyData<'a>) = "token" / "done" => frame,
        TextSegment(data: ReplyData<'a>) = "text_segment" => frame,
        BlockStart(data: BlockStartData<'a>) = "content_block" / "start" => frame,
        BlockUpdate(data: BlockUpdateData<'a>) = "content_block" / "update" => frame,
        ApprovalAsked(data: ApprovalAskedData<'a>) = "approval" / "asked" => frame,
        ApprovalResolved(data: ApprovalResolvedData<'a>) = "approval" / "resolved" => frame,
        QuestionsAsked(data: QuestionsAskedData<'a>) = "ask_user" => event,
        QuestionsResolved(data: QuestionsResolvedData<'a>) = "ask_user" / "resolved" => event,
        Typing(data: TypingData<'a>) = "typing" => frame,
        UserPresence(data: UserPresenceData<'a>) = "presence" => frame,
        AgentPresence(data: AgentPresenceData<'a>) = "presence" => frame,
        Terminal = "terminal" => frame,
    }
}

/// A message of the stream (`UiSseMessage`). Absent fields are omitted.
#[derive(Debug)]
#[cfg_attr(test, derive(TS), ts(rename = "UiSseMessage", optional_fields))]
pub struct UiMessage<'a> {
    /// Id of the subject. A later message with the same id replaces the earlier one.
    pub id: String,
    /// Ordinal of the message.
    pub seq: u64,
    /// Revision: number of messages with this id so far.
    pub rev: u64,
    pub ts_ms: i64,
    #[cfg_attr(test, ts(flatten))]
    pub subject: Subject<'a>,
    pub text: Option<Cow<'a, str>>,
    pub agent_id: Option<&'a str>,
    /// Room of the message.
    pub session_id: Option<&'a str>,
    /// Session of the agent, if the run of the message takes place in one.
    pub agent_session_id: Option<&'a str>,
    pub project_root: Option<&'a str>,
}

impl Serialize for UiMessage<'_> {
    /// Writes `data` last, although kind and phase precede the other fields.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("rev", &self.rev)?;
        map.serialize_entry("ts_ms", &self.ts_ms)?;
        map.serialize_entry("kind", self.subject.kind())?;
        let optional = [
            ("phase", self.subject.phase()),
            ("text", self.text.as_deref()),
            ("agent_id", self.agent_id),
            ("session_id", self.session_id),
            ("agent_session_id", self.agent_session_id),
            ("project_root", self.project_root),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                map.serialize_entry(key, value)?;
            }
        }
        self.subject.serialize_data(&mut map)?;
        map.end()
    }
}

impl<'a> UiMessage<'a> {
    /// Creates a message without ordinal and time; [`UiMessage::write`] sets them.
    pub fn new(id: String, subject: Subject<'a>) -> Self {
        let (text, agent_id, session_id, agent_session_id, project_root) = Default::default();
        Self {
            id,
            seq: 0,
            rev: 1,
            ts_ms: 0,
            subject,
            text,
            agent_id,
            session_id,
            agent_session_id,
            project_root,
        }
    }

    pub fn rev(self, rev: u64) -> Self {
        Self { rev, ..self }
    }

    pub fn text(self, text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    pub fn by_agent(self, agent: &'a AgentId) -> Self {
        Self { agent_id: Some(agent.as_str()), ..self }
    }

    pub fn in_room(self, room: &'a RoomId) -> Self {
        Self { session_id: Some(room.as_str()), ..self }
    }

    /// Sets the room and the session of a run, as far as it has them.
    pub fn at(self, place: &'a RunPlace) -> Self {
        let agent_session_id = place.session().map(SessionId::as_str);
        Self { session_id: place.room().map(RoomId::as_str), agent_session_id, ..self }
    }

    /// Sets the project root of the room.
    pub fn with_root(self, root: Option<&'a str>) -> Self {
        Self { project_root: root, ..self }
    }

    /// Encodes the message. `position` is set for the last message of a logged event, so that a client can
    /// resume after it.
    pub fn write(
        mut self,
        form: StreamFormat,
        ordinal: Ordinal,
        at: Time,
        position: Option<Position>,
    ) -> String {
        (self.seq, self.ts_ms) = (ordinal.0, at.0.div_euclid(1000));
        let size = 384 + self.text.as_ref().map_or(0, |text| text.len());
        match form {
            StreamFormat::Frame => {
                let position = position.map(|position| position.to_string());
                encode_about(&EventFrame::Event { position, event: self }, size)
            }
            StreamFormat::Block => {
                let id = position.map_or(String::new(), |position| format!("id: {position}\n"));
                format!("{id}data: {}\n\n", encode_about(&self, size))
            }
        }
    }
}

/// A frame of `/ws/client` for a client that subscribed to chat events.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(tag = "type")]
#[allow(clippy::large_enum_variant, reason = "a frame is encoded where it is built")]
pub enum EventFrame<'a> {
    #[serde(rename = "server:event")]
    Event {
        /// Set in the last message of a logged event, so that a client can resume after it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        position: Option<String>,
        event: UiMessage<'a>,
    },
    #[serde(rename = "server:events_subscribed")]
    EventsSubscribed { position: String },
}

/// Encoding of the stream: SSE blocks of `GET /api/events`, or WebSocket frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamFormat {
    #[default]
    Block,
    Frame,
}
