//! Constructors for the commands and queries of the permission table, and the scopes.

use crate::callers::{lobby, other_user};
use parlor_model::audit::AuditFilter;
use parlor_model::command::{NewInvitation, NewUpload, NewUser, ProfileChanges, RoomChanges, UserChanges};
use parlor_model::query::MailPage;
use parlor_model::{
    AgentId, BlobDigest, Command, Edit, File, InvitationId, Mailbox, MediaType, MemberId, MessageId,
    ModelAccess, ModelApi, Path, Pattern, Payload, Post, Query, Relay, RoomId, RoomPreferenceChange,
    RoomRole, Route, RouterId, Scope, SecretHash, SessionId, SettingChanges, SiteRole, Time, UploadId,
};

pub use crate::callers::{coder_member, other_member, person};

pub const READ: Option<Scope> = Some(Scope::Read);
pub const WRITE: Option<Scope> = Some(Scope::Write);
pub const AGENTS: Option<Scope> = Some(Scope::Agents);
pub const HOSTING: Option<Scope> = Some(Scope::Hosting);
pub const SOURCES: Option<Scope> = Some(Scope::Sources);
pub const LETTERS: Option<Scope> = Some(Scope::DeadLetters);
pub const METRICS: Option<Scope> = Some(Scope::Metrics);
pub const ADMINS: Option<Scope> = Some(Scope::Admin);
/// No key is allowed: the action requires a user session.
pub const PERSON: Option<Scope> = None;

pub const TOKEN: SecretHash = SecretHash([7; 32]);
pub const LATER: Time = Time(9_000);

pub fn offer_setup() -> Command {
    Command::OfferSetup { token: TOKEN, expires_at: LATER }
}

pub fn set_up() -> Command {
    Command::SetUp { token: TOKEN, account: account() }
}

pub fn create_user() -> Command {
    Command::CreateUser(account())
}

fn account() -> NewUser {
    let (username, password_hash) = ("new".into(), "hash".into());
    NewUser { username, display_name: None, role: SiteRole::Admin, password_hash }
}

pub fn change_user() -> Command {
    Command::ChangeUser { user: other_user(), changes: UserChanges::default() }
}

pub fn set_password() -> Command {
    let changes = UserChanges { password_hash: Some("hash".into()), ..Default::default() };
    Command::ChangeUser { user: other_user(), changes }
}

pub fn remove_user() -> Command {
    Command::RemoveUser { user: other_user() }
}

pub fn create_invitation() -> Command {
    let (role, expires_at) = (SiteRole::Admin, LATER);
    Command::CreateInvitation(NewInvitation { role, note: None, uses: 1, expires_at, secret: TOKEN })
}

pub fn change_settings() -> Command {
    Command::ChangeSettings(SettingChanges { invitations: Edit::Set(false), ..Default::default() })
}

pub fn revoke_invitation() -> Command {
    Command::RevokeInvitation { invitation: InvitationId::stored("invitation") }
}

pub fn offer_pairing() -> Command {
    Command::OfferPairing { code: TOKEN, expires_at: LATER }
}

pub fn pair() -> Command {
    Command::Pair { code: TOKEN, name: "laptop".into(), secret: TOKEN }
}

pub fn register() -> Command {
    Command::Register { token: TOKEN, account: account() }
}

pub fn may_register() -> Query {
    Query::MayRegister { token: TOKEN }
}

pub fn change_profile() -> Command {
    Command::ChangeProfile(ProfileChanges { display_name: Some("New".into()), avatar_url: Edit::Keep })
}

pub fn change_password() -> Command {
    Command::ChangePassword { verified_password_hash: "old hash".into(), password_hash: "new hash".into() }
}

pub fn create_room(member: MemberId) -> Command {
    Command::CreateRoom { changes: RoomChanges::default(), members: vec![member] }
}

pub fn a_model() -> ModelAccess {
    ModelAccess { api: ModelApi::OpenAi, base_url: "https://a.b".into(), model: "m".into(), key: None }
}

fn with_router() -> RoomChanges {
    RoomChanges { router: Edit::Set(RouterId::stored("router")), ..RoomChanges::default() }
}

pub fn create_routed_room() -> Command {
    Command::CreateRoom { changes: with_router(), members: Vec::new() }
}

pub fn route_room() -> Command {
    Command::ChangeRoom { room: lobby(), changes: with_router() }
}

pub fn set_project_root() -> Command {
    Command::SetProjectRoot { room: lobby(), root: Some("/srv/code".into()), there: true }
}

pub fn workspace() -> Query {
    Query::Workspace { room: lobby() }
}

pub fn rooms_at(room: Option<RoomId>) -> Query {
    Query::RoomsAt { root: "/srv/code".into(), room }
}

pub fn change_room() -> Command {
    Command::ChangeRoom { room: lobby(), changes: RoomChanges::default() }
}

pub fn freeze() -> Command {
    Command::Freeze { room: lobby() }
}

pub fn thaw() -> Command {
    Command::Thaw { room: lobby() }
}

pub fn delete_room() -> Command {
    Command::DeleteRoom { room: lobby() }
}

pub fn add(member: MemberId, role: RoomRole) -> Command {
    Command::AddMember { room: lobby(), member, role, description: None }
}

pub fn change(member: MemberId, role: RoomRole) -> Command {
    Command::ChangeMember { room: lobby(), member, role: Some(role), description: Edit::Keep }
}

pub fn describe(member: MemberId) -> Command {
    let description = Some(Some("takes notes".into()));
    Command::ChangeMember { room: lobby(), member, role: None, description: description.into() }
}

pub fn change_preferences(how: RoomPreferenceChange) -> Command {
    Command::ChangeRoomPreferences { room: lobby(), how }
}

pub fn remove(member: MemberId) -> Command {
    Command::RemoveMember { room: lobby(), member }
}

pub fn post() -> Post {
    Post {
        room: lobby(),
        text: "hello".into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    }
}

pub fn upload(avatar: bool) -> Command {
    let file = File { name: "cat.png".into(), media: MediaType::Png, size: 3 };
    Command::Upload(NewUpload { file, digest: BlobDigest([3; 32]), avatar })
}

pub fn note_backup() -> Command {
    Command::NoteBackup { through: parlor_model::Seq(7) }
}

pub fn take_released() -> Command {
    Command::TakeUnreferencedBlobs { limit: 10 }
}

pub fn subscribe(session: Option<&str>, pattern: &str) -> Command {
    Command::Subscribe { mailbox: mailbox(session), pattern: Pattern::parse(pattern).unwrap() }
}

pub fn unsubscribe(session: Option<&str>, pattern: &str) -> Command {
    Command::Unsubscribe { mailbox: mailbox(session), pattern: Pattern::parse(pattern).unwrap() }
}

pub fn route(from: &str, path: &str) -> Command {
    Command::Route(Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload("{}".into()),
        text: Some("hello".into()),
        source: "test".into(),
        external_id: None,
    })
}

pub fn relay() -> Command {
    Command::Relay(Relay {
        room: lobby(),
        author: "coder".into(),
        recipient: Some("writer".into()),
        observers: Vec::new(),
        text: "hello".into(),
        continues: None,
        source: "test".into(),
        external_id: None,
    })
}

pub fn receive() -> Command {
    Command::Receive { mailbox: mailbox(None), limit: 10, lease: None }
}

pub fn receive_in_session() -> Command {
    let lease = Some(std::time::Duration::from_secs(30));
    Command::Receive { mailbox: mailbox(Some("main")), limit: 10, lease }
}

pub fn acknowledge(session: Option<&str>) -> Command {
    Command::Acknowledge { mailbox: mailbox(session), messages: vec![MessageId::stored("message")] }
}

pub fn users() -> Query {
    Query::Users { limit: 10, offset: 0 }
}

pub fn audit() -> Query {
    Query::Audit(AuditFilter::default())
}

pub fn search() -> Query {
    Query::SearchUsers { text: "a".into() }
}

pub fn room() -> Query {
    Query::Room { room: lobby() }
}

pub fn members() -> Query {
    Query::Members { room: lobby(), limit: 10, offset: 0 }
}

pub fn read_upload() -> Query {
    Query::Upload { id: UploadId::stored("upload") }
}

pub fn may_follow() -> Query {
    Query::MayFollow { room: lobby() }
}

pub fn may_listen() -> Query {
    Query::MayListen { agent: coder() }
}

pub fn rooms_with() -> Query {
    Query::RoomsWith { agent: coder() }
}

pub fn subscriptions(session: Option<&str>) -> Query {
    Query::Subscriptions { mailbox: mailbox(session) }
}

pub fn mail(session: Option<&str>) -> Query {
    Query::Mail { mailbox: mailbox(session), page: MAIL_PAGE }
}

pub fn dead_letters() -> Query {
    Query::DeadLetters { page: MAIL_PAGE }
}

const MAIL_PAGE: MailPage = MailPage { limit: 10, from: None, to: None };

fn mailbox(session: Option<&str>) -> Mailbox {
    Mailbox { agent: coder(), session: session.map(SessionId::stored) }
}

fn coder() -> AgentId {
    AgentId::stored("coder")
}
