//! Facts of the permission table: the entities that a command names, as the store would return them.

use crate::callers::{CallerKind, coder_member, lobby, member, other_member, other_user, person, user};
use parlor_engine::facts::{AuthContext, Facts, Membership};
use parlor_model::{
    AddressedBy, Agent, AgentHost, AgentId, BlobDigest, ConversationId, Destination, File, Frozen,
    Invitation, InvitationId, Lineage, MediaType, Member, Message, MessageId, MessageKind, ModelAccess,
    ModelApi, Pairing, RoomRole, Router, RouterId, Run, RunId, RunState, Scope, Sender, Seq, SiteRole, Time,
    Upload, UploadId, UploadPurpose, Usage, UserId, Visibility,
};
use std::sync::Arc;

pub type Given = fn(&mut Facts, CallerKind);

/// The room and the caller's membership only.
pub const READY: Given = |_, _| {};
pub const NO_ROOM: Given = |facts, _| (facts.room, facts.membership) = (None, None);

pub const FROZEN_BY_MEMBER: Given = |facts, _| frozen(facts, CallerKind::Member.user());
pub const FROZEN_BY_OPERATOR: Given = |facts, _| frozen(facts, None);

pub const ROOT_ALLOWED: Given = |facts, _| facts.root_allowed = true;
pub const ROOM_WITH_ROOT: Given = |facts, who| {
    ROOM_WITH_DISALLOWED_ROOT(facts, who);
    ROOT_ALLOWED(facts, who);
};
pub const ROOM_WITH_DISALLOWED_ROOT: Given = |facts, _| {
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).project_root = Some("/srv/code".into());
    }
};
pub const MEMBER_AT_ROOT: Given = |facts, who| {
    MEMBER_AT_DISALLOWED_ROOT(facts, who);
    ROOT_ALLOWED(facts, who);
};
pub const MEMBER_AT_DISALLOWED_ROOT: Given = |facts, _| {
    let room = facts.room.as_deref().cloned().expect("the facts contain the room");
    let (member, everyone) = (member(other_member(), RoomRole::Member), Arc::new([]));
    facts.memberships.push(Membership { room, member, everyone });
};

pub const OTHER_USER: Given = |facts, _| facts.user = Some(user(&other_user(), SiteRole::User));

pub const OWN_ROUTER: Given = |facts, who| facts.router = who.user().map(|user| router(user, false));
pub const ANOTHERS_ROUTER: Given = |facts, _| facts.router = Some(router(other_user(), false));
pub const SHARED_ROUTER: Given = |facts, _| facts.router = Some(router(other_user(), true));

/// An invitation created by the operator.
pub const INVITATION: Given = |facts, _| facts.invitation = Some(invitation(None));
pub const INVITATION_OF_AN_ADMIN: Given = |facts, _| {
    facts.invitation = Some(invitation(Some(other_user())));
    facts.user = Some(user(&other_user(), SiteRole::Admin));
};
pub const INVITATION_OF_FORMER_ADMIN: Given = |facts, who| {
    INVITATION_OF_AN_ADMIN(facts, who);
    OTHER_USER(facts, who);
};
pub const INVITATION_OF_REMOVED_USER: Given =
    |facts, _| facts.invitation = Some(invitation(Some(other_user())));
pub const SPENT_INVITATION: Given =
    |facts, _| facts.invitation = Some(Invitation { uses_left: 0, ..invitation(None) });
pub const EXPIRED_INVITATION: Given =
    |facts, _| facts.invitation = Some(Invitation { expires_at: facts.now, ..invitation(None) });

pub const PAIRING: Given = |facts, who| {
    PAIRING_OF_REMOVED_USER(facts, who);
    facts.user = Some(user(&other_user(), SiteRole::User));
};
pub const PAIRING_OF_REMOVED_USER: Given =
    |facts, _| facts.pairing = Some(Pairing { user: other_user(), expires_at: Time(5_000) });
pub const EXPIRED_PAIRING: Given = |facts, who| {
    PAIRING(facts, who);
    facts.pairing = Some(Pairing { user: other_user(), expires_at: facts.now });
};

/// A valid invitation, while the setting forbids invitations.
pub const NO_INVITATIONS: Given = |facts, who| {
    INVITATION(facts, who);
    facts.settings.invitations = Some(false);
};

pub const A_MEMBER: Given = |facts, _| facts.target = Some(member(other_member(), RoomRole::Member));
pub const AN_ADMIN: Given = |facts, _| facts.target = Some(member(other_member(), RoomRole::Admin));
pub const THE_OWNER: Given = |facts, _| facts.target = Some(member(other_member(), RoomRole::Owner));
pub const THE_MEMBER_COLUMN: Given =
    |facts, _| facts.target = Some(member(person("member"), RoomRole::Member));
pub const THE_ADMIN_COLUMN: Given = |facts, _| facts.target = Some(member(person("admin"), RoomRole::Admin));
pub const AN_AGENT: Given = |facts, _| facts.target = Some(member(coder_member(), RoomRole::Member));

pub const OWN_AGENT: Given = |facts, who| facts.agent = who.user().map(agent);
pub const ANOTHERS_AGENT: Given = |facts, _| facts.agent = Some(agent(other_user()));
pub const OWN_AGENT_IN_ROOM: Given = |facts, who| {
    OWN_AGENT(facts, who);
    AN_AGENT(facts, who);
};
pub const ANOTHERS_AGENT_IN_ROOM: Given = |facts, who| {
    ANOTHERS_AGENT(facts, who);
    AN_AGENT(facts, who);
};
/// Another user's agent in a room where only admins may command agents.
pub const ADMINS_COMMAND_AGENTS: Given = |facts, who| {
    ANOTHERS_AGENT_IN_ROOM(facts, who);
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).agent_command_role = RoomRole::Admin;
    }
};
/// An agent of the column `AgentOwner`, which is also the owner of the keys.
pub const AGENT_OWNERS_AGENT: Given = |facts, _| facts.agent = CallerKind::AgentOwner.user().map(agent);
pub const AGENT_OWNERS_AGENT_IN_ROOM: Given = |facts, who| {
    AGENT_OWNERS_AGENT(facts, who);
    AN_AGENT(facts, who);
};
pub const AGENT_OWNERS_AGENT_NO_ROOM: Given = |facts, who| {
    AGENT_OWNERS_AGENT(facts, who);
    NO_ROOM(facts, who);
};
pub const OWN_AGENT_OF_ANOTHER_NAME: Given = |facts, who| {
    facts.agent = who.user().map(|owner| Agent { id: AgentId::stored("other"), ..agent(owner) });
};

/// Another user's agent, shared with all users.
pub const AGENT_SHARED_WITH_ALL: Given =
    |facts, _| facts.agent = Some(Agent { visibility: Visibility::All, ..agent(other_user()) });
/// Another user's agent, shared with the column `RoomAdmin`.
pub const AGENT_SHARED_WITH_ADMIN: Given = |facts, _| {
    let visibility = Visibility::List(vec![UserId::stored("admin")]);
    facts.agent = Some(Agent { visibility, ..agent(other_user()) });
};

/// The keys are unchanged, but their owner is no longer an admin.
pub const OWNER_OF_KEYS_DEMOTED: Given = |facts, _| {
    NO_ROOM(facts, CallerKind::KeyWith);
    let standing = facts.standing.as_deref().cloned().filter(|standing| standing.scopes.is_some());
    if let Some(standing) = standing {
        let user = user(&standing.user.id, SiteRole::User);
        facts.standing = Some(Arc::new(AuthContext { user: user.into(), ..standing }));
    }
};
pub const VISIBLE_AGENT: Given = |facts, who| {
    ANOTHERS_AGENT(facts, who);
    facts.agent_visible = true;
};

/// The keys have neither the admin scope nor the one for this query.
pub const KEYS_READ_ONLY: Given = |facts, _| {
    let standing = facts.standing.as_deref().cloned();
    let keys = standing.map(|standing| AuthContext {
        scopes: standing.scopes.as_ref().map(|_| vec![Scope::Read]),
        ..standing
    });
    facts.standing = keys.map(Arc::new);
};

pub const ANOTHERS_MESSAGE: Given = |facts, _| facts.message = Some(message(Sender::User(other_user())));
/// A message from before the caller cleared the room.
pub const MESSAGE_CLEARED_AWAY: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    cleared(&mut facts.membership);
};
pub const A_RUN: Given = |facts, _| facts.run = Some(run());

pub fn run() -> Run {
    let agent = AgentId::stored("coder");
    Run {
        id: RunId::stored("run"),
        agent: agent.clone(),
        room: lobby(),
        trigger: None,
        task: None,
        asked_by: None,
        arrival: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), agent),
        parent: None,
        state: RunState::Running,
        reply: None,
        usage: Usage::default(),
        queued_at: Time(5),
        started_at: Some(Time(5)),
        ended_at: None,
    }
}

fn cleared(membership: &mut Option<Arc<Member>>) {
    if let Some(own) = membership {
        Arc::make_mut(own).room_preferences.cleared_through = Seq(5);
    }
}

/// An upload of the caller on a message; its ownership does not matter there.
pub const UPLOAD_ON_MESSAGE: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    facts.uploads = vec![upload(who.user(), UploadPurpose::Message(MessageId::stored("message")))];
};
pub const UPLOAD_ON_MESSAGE_CLEARED_AWAY: Given = |facts, who| {
    UPLOAD_ON_MESSAGE(facts, who);
    MESSAGE_CLEARED_AWAY(facts, who);
};
pub const UPLOAD_ON_MESSAGE_NO_ROOM: Given = |facts, who| {
    UPLOAD_ON_MESSAGE(facts, who);
    NO_ROOM(facts, who);
};
pub const OWN_WAITING_UPLOAD: Given =
    |facts, who| facts.uploads = vec![upload(who.user(), UploadPurpose::Unattached)];
pub const ANOTHERS_WAITING_UPLOAD: Given =
    |facts, _| facts.uploads = vec![upload(Some(other_user()), UploadPurpose::Unattached)];
pub const AN_AVATAR: Given =
    |facts, _| facts.uploads = vec![upload(Some(other_user()), UploadPurpose::Avatar)];

fn upload(owner: Option<UserId>, purpose: UploadPurpose) -> Upload {
    Upload {
        id: UploadId::stored("upload"),
        owner: owner.unwrap_or_else(other_user),
        file: File { name: "cat.png".into(), media: MediaType::Png, size: 3 },
        digest: BlobDigest([3; 32]),
        created_at: Time(1),
        purpose,
    }
}

pub fn router(created_by: UserId, shared: bool) -> Router {
    let model =
        ModelAccess { api: ModelApi::OpenAi, base_url: "https://a.b".into(), model: "m".into(), key: None };
    let (created_at, updated_at) = (Time(1), Time(1));
    let id = RouterId::stored("router");
    Router { id, name: "picker".into(), shared, model, created_by, created_at, updated_at }
}

fn invitation(created_by: Option<UserId>) -> Invitation {
    Invitation {
        id: InvitationId::stored("invitation"),
        role: SiteRole::User,
        note: None,
        uses: 1,
        uses_left: 1,
        created_by,
        created_at: Time(1),
        expires_at: Time(5_000),
    }
}

pub fn agent(owner: UserId) -> Agent {
    Agent {
        id: AgentId::stored("coder"),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: AgentHost { working_directory: Some("/work".into()), ..AgentHost::default() },
        visibility: Default::default(),
        created_at: Time(1),
    }
}

fn frozen(facts: &mut Facts, by: Option<UserId>) {
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).frozen = Some(Frozen { by, at: Time(1) });
    }
}

pub fn message(sender: Sender) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId::stored("message"),
        seq: Seq(5),
        at: Time(5),
        destination: Destination::Room(lobby()),
        sender,
        sender_name: "Sender".into(),
        kind: MessageKind::Text,
        text: "hello".into(),
        mentions: Vec::new(),
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: "internal".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
    })
}
