//! Domain types shared by every crate: entities, commands, queries, events, signals and refusals.
//!
//! Contains no I/O, no async code and no clock. The engine decides with these types, the backends store them, and
//! the protocol adapters translate them to and from wire formats. The serde encoding is for other machines of the
//! same hub. It is no wire format of a protocol: those are in `wire`.

#[macro_use]
mod text_encoding;

pub mod account;
pub mod agent;
pub mod approval;
pub mod audience;
pub mod audit;
pub mod caller;
pub mod characters;
pub mod command;
pub mod conversation;
pub mod delivery;
pub mod edit;
pub mod event;
pub mod field;
pub mod grant;
pub mod id;
pub mod inquiry;
pub mod invitation;
pub mod lineage;
pub mod mention;
pub mod message;
pub mod mission;
pub mod occupant;
pub mod path;
pub mod plan;
pub mod position;
pub mod query;
pub mod refusal;
pub mod room;
pub mod room_selection;
pub mod router;
pub mod run;
pub mod run_event;
pub mod second_factor;
pub mod service;
pub mod session;
pub mod settings;
pub mod signal;
pub mod task;
pub mod time;
pub mod tool;
pub mod turn;
pub mod upload;

pub use account::{
    ApiKey, Pairing, RefreshToken, Revocation, Scope, SecretHash, SignIn, SigningKey, SiteRole, User,
};
pub use agent::{Agent, AgentHost, Device, Gateway, Subscription, Visibility};
pub use approval::{Approval, ApprovalKind, ApprovalRule, ApprovalSubject, Decider, Decision, InputDigest};
pub use audience::EventAudience;
pub use caller::{AgentCredential, Caller, Principal};
pub use command::{AgentReply, Post, PostAuthor, Relay, RoomPreferenceChange, Route, RunTrigger, StartedRun};
pub use conversation::{ConversationEntry, EntryKind};
pub use delivery::{DeadLetter, Delivery, DeliveryState, Mailbox, SessionRef};
pub use edit::Edit;
pub use event::{Event, EventScope, LoggedEvent, MemberChange, RightsHolder};
pub use field::Field;
pub use grant::{AgentLimit, Grant, GrantEntry, KeyGrant, Operation, Operations, Resource};
pub use id::{
    AgentId, ApprovalId, ConversationId, GatewayId, InvalidId, InvitationId, KeyId, MemberId, MessageId,
    MissionId, RoomId, RouterId, RunId, SessionId, SignInId, TaskId, UploadId, UserId,
};
pub use inquiry::{
    AnswerKind, Answerer, CredentialAction, GatewayRequest, Inquiry, InquiryAnswer, Spawn, WorkspaceRequest,
};
pub use invitation::{Invitation, RoomInvitation};
pub use lineage::{Lineage, LineageLimit};
pub use message::{
    Answer, Bookmark, Destination, Forwarded, Mention, Message, MessageKind, Origin, Payload, Pin, Reaction,
    Reactor, Relayed, Revision, Sender, SenderKind,
};
pub use mission::{IdlePrompt, Mission, MissionAgent, MissionScope};
pub use occupant::{Occupant, OccupantChange, OccupantSource, PresentAgent, PresentUser};
pub use path::{Path, Pattern};
pub use plan::CurrentPlan;
pub use position::{Epoch, Ordinal, Position, Seq, SignalStamp};
pub use refusal::{EntityKind, FieldError, Refusal};
pub use room::{AnswerPolicy, Frozen, Member, Notifications, Room, RoomKind, RoomPreferences, RoomRole};
pub use room_selection::RoomSelection;
pub use router::{ModelAccess, ModelApi, Router, SealedKey};
pub use run::{
    AddressedBy, Chunk, ChunkKind, IllegalTransition, Run, RunCause, RunContext, RunOutcome, RunOutput,
    RunPlace, RunState, Usage,
};
pub use run_event::{
    Activity, ChangeReport, ChangedFile, Choice, ContextUsage, Plan, PlanState, PlanStep, Question,
    Questions, RunEvent, StepState, Stream, Subagent, SubagentChange, SubagentOutcome, UsageReport,
};
pub use second_factor::{SecondFactor, SecondProof};
pub use service::Service;
pub use session::{AutoRun, InvalidAutoRun, Session};
pub use settings::{HubSettings, SettingChanges};
pub use signal::{AgentSessions, AgentStatus, QueuedMessage, ReplyPart, Signal};
pub use task::{Task, TaskPriority, TaskStatus};
pub use time::Time;
pub use tool::{
    InvalidTool, ToolCall, ToolDescription, ToolFailure, ToolFailureCode, ToolManifest, ToolResult,
};
pub use turn::{NewTurnDecision, TurnDecision, TurnDecisionKind, TurnPage};
pub use upload::{Attachment, BlobDigest, File, MediaType, Upload, UploadPurpose};
