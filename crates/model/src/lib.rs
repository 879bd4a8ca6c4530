//! The nouns and the shared words of Parlor: what exists, what can be asked for, what happened.
//!
//! No I/O, no async, no clock, no serialisation: every other crate speaks in these types.

pub mod account;
pub mod agent;
pub mod approval;
pub mod asking;
pub mod audit;
pub mod caller;
pub mod circle;
pub mod command;
pub mod delivery;
pub mod event;
pub mod id;
pub mod invitation;
pub mod letters;
pub mod lineage;
pub mod mention;
pub mod message;
pub mod mission;
pub mod path;
pub mod plan;
pub mod position;
pub mod query;
pub mod refusal;
pub mod room;
pub mod router;
pub mod run;
pub mod run_event;
pub mod second_factor;
pub mod service;
pub mod settings;
pub mod signal;
pub mod task;
pub mod time;
pub mod upload;

pub use account::{ApiKey, Pairing, RefreshToken, Scope, SecretHash, SignIn, SiteRole, User};
pub use agent::{Agent, Device, Gateway, Host, Session, Subscription, Visibility};
pub use approval::{Approval, ApprovalRule, Decider, Decision, Digest, Matter};
pub use asking::{AnswerKind, Answered, Answerer, CredentialErrand, Errand, Inquiry, Look, Spawn};
pub use caller::{Caller, Principal};
pub use circle::Circle;
pub use command::{Arranging, Command, FinishedRun, Post, Prompt, Receipt, Route, Said, Started};
pub use delivery::{DeadLetter, Delivery, DeliveryState, Mailbox, SessionRef};
pub use event::{Event, Logged, MemberChange};
pub use id::{
    AgentId, ApprovalId, ConversationId, GatewayId, InvalidId, InvitationId, KeyId, MemberId, MessageId,
    MissionId, RoomId, RouterId, RunId, SessionId, SignInId, TaskId, UploadId, UserId,
};
pub use invitation::Invitation;
pub use lineage::{Broken, Lineage};
pub use message::{
    Bookmark, Forwarded, Mention, Message, MessageKind, Payload, Pin, Place, Reaction, Reactor, Revision,
    Sender, SenderKind,
};
pub use mission::{Idle, Mission, MissionAgent, Realm};
pub use path::{Path, Pattern};
pub use plan::StandingPlan;
pub use position::{Epoch, Moment, Ordinal, Position, Seq};
pub use query::{Answer, Query};
pub use refusal::{Flaw, Refusal, Thing};
pub use room::{Arrangement, Frozen, Member, Notifications, Policy, Room, RoomKind, RoomRole};
pub use router::{ModelAccess, ModelApi, Router, SealedKey};
pub use run::{Addressed, Chunk, ChunkKind, Illegal, Outcome, Run, RunState, Turn, Usage};
pub use run_event::{
    Activity, ChangeReport, ChangedFile, Choice, ContextUsage, Plan, PlanState, PlanStep, Question,
    Questions, RunEvent, StepState, Stream, Subagent, SubagentChange, SubagentOutcome, UsageReport,
};
pub use second_factor::{SecondFactor, SecondProof};
pub use service::Service;
pub use settings::{HubSettings, SettingChanges};
pub use signal::{AgentStatus, Queued, Signal};
pub use task::{Task, TaskStatus};
pub use time::Time;
pub use upload::{Attachment, BlobDigest, File, Media, Upload, Use};
