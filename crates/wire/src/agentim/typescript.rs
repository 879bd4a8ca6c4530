//! The TypeScript of the web, from the same types as the REST bodies, the frames and the OpenAPI document.
//!
//! `cargo xtask types` writes the file; otherwise the test says whether it is up to date.

use super::frames::{
    ChunkFrame, ForwardedFrame, MemberFrame, MessageFrame, Metadata, ReactionFrame, RoomFrame,
};
use super::rest::*;
use crate::files::FileFrame;
use std::fs;
use ts_rs::{Config, TS};

/// Set by `cargo xtask types`.
const WRITE: &str = "XTASK_WRITE_TYPES";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/generated/api.ts");

macro_rules! types {
    ($($type:ty),+ $(,)?) => {
        fn declarations() -> Vec<String> {
            vec![$(<$type as TS>::decl(&config())),+]
        }

        /// The names of the types that others are made of.
        fn used() -> Vec<String> {
            let used = [$(<$type as TS>::dependencies(&config())),+];
            used.into_iter().flatten().map(|used| used.ts_name).collect()
        }
    };
}

/// Sequence numbers stay below 2^53 for longer than anybody will look.
fn config() -> Config {
    Config::new().with_large_int("number")
}

types![
    // The lists of words.
    SiteRole,
    RoomRole,
    RoomKind,
    RoomPolicy,
    TaskStatus,
    Scope,
    MessageType,
    MemberType,
    SenderType,
    NotificationPref,
    AgentVisibility,
    DecisionWord,
    RouterScope,
    ServiceAgentType,
    ServiceAgentStatus,
    ServiceAgentCategory,
    ModelApi,
    LimitKind,
    LimitUnit,
    // What is sent.
    Login,
    RefreshBody,
    SetUp,
    NewUser,
    UserChanges,
    Profile,
    PasswordChange,
    NewKey,
    NewInvitation,
    PairingExchange,
    RouterBody,
    ServiceAgentBody,
    ServiceAgentSettings,
    Registration,
    NewSettings,
    ChangedSettings,
    TotpLogin,
    TotpCode,
    PasswordProof,
    RoomBody,
    NewMember,
    MemberChanges,
    NewMessage,
    MessageEdit,
    MessageList,
    ForwardTo,
    NewReaction,
    NewBookmark,
    Notify,
    NewAgent,
    AgentChanges,
    NewDecision,
    NewTask,
    TaskChanges,
    NewSpawn,
    // What is answered.
    Success<()>,
    Done,
    User,
    ManagedUser,
    Person,
    SignedIn,
    LoginAnswer,
    TotpRequired,
    AuditPage,
    AuditEntry,
    AuditActor,
    AuditSubject,
    Settings,
    Limit,
    TotpSetup,
    BackupCodes,
    Tokens,
    OauthProvider,
    Session,
    Key,
    CreatedKey,
    Invitation,
    CreatedInvitation,
    PairingCode,
    Router,
    RouterTest,
    ServiceAgent,
    ServiceAgentConfig,
    ServiceProvider,
    ServiceValidation,
    Room,
    RoomOfMember,
    RoomWithMembers,
    Member,
    Members,
    Pagination,
    Users,
    Repeated,
    DeletedMessage,
    History,
    RecentRooms,
    Recent,
    Found,
    Hit,
    Highlight,
    Revision,
    Thread,
    ReplyCount,
    Deleted,
    Approval,
    ApprovalRule,
    PinnedMessage,
    Bookmark,
    Bookmarks,
    Pinned,
    Archived,
    Cleared,
    Notified,
    Agent,
    DeviceInfo,
    Task,
    Gateway,
    Spawning,
    Avatar,
    Link,
    Health,
    Checks,
    Problem,
    Field,
    // What frames carry.
    FileFrame,
    MessageFrame,
    ChunkFrame,
    ReactionFrame,
    TurnDelivery,
    Metadata,
    ForwardedFrame,
    RoomFrame,
    MemberFrame,
];

fn text() -> String {
    let mut text =
        "// Made by `cargo xtask types` from the Rust types; changed there, not here.\n".to_owned();
    for declaration in declarations() {
        text += "\nexport ";
        text += &declaration;
        text += "\n";
    }
    text
}

#[test]
fn the_typescript_in_the_repository_is_up_to_date() {
    if std::env::var_os(WRITE).is_some() {
        fs::write(FILE, text()).unwrap();
    }
    let found = fs::read_to_string(FILE).unwrap_or_default();
    assert!(found == text(), "run `cargo xtask types` and commit {FILE}");
}

#[test]
fn numbers_are_numbers_and_what_is_absent_is_not_null() {
    let declared = |name: &str| {
        let start = format!("type {name} = ");
        declarations().into_iter().find(|text| text.starts_with(&start)).unwrap()
    };
    assert!(!text().contains("bigint"));
    let message = declared("Message");
    for part in ["seq: number", "replyToId?: string", "type: MessageType", "createdAt: string"] {
        assert!(message.contains(part), "no `{part}` in {message}");
    }
    // Frames never carry `null`; the keys of REST that are always there may.
    for name in ["Message", "RoomFrame", "MemberFrame", "Problem", "Tokens", "History"] {
        assert!(!declared(name).contains("null"), "{}", declared(name));
    }
    assert!(declared("Room").contains("systemPrompt: string | null"), "{}", declared("Room"));
    assert!(declared("RoomBody").contains("systemPrompt?: string | null"), "{}", declared("RoomBody"));
}

/// A type that is left out above, but used, would break the web.
#[test]
fn every_type_that_is_used_is_declared() {
    let text = text();
    for name in used() {
        let declared = [" =", "<"].iter().any(|end| text.contains(&format!("export type {name}{end}")));
        assert!(declared, "{name} is used and not declared");
    }
}
