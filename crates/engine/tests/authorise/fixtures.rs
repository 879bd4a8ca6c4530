//! What is given besides who asks: what the store would find about the things a command names.

use crate::callers::{CallerKind, coder_member, lobby, member, person, somebody, someone, user};
use parlor_engine::facts::{AuthContext, Facts, Membership};
use parlor_model::{
    AddressedBy, Agent, AgentHost, AgentId, ApiKey, Approval, ApprovalId, ApprovalKind, ApprovalRule,
    BlobDigest, ConversationId, Destination, Device, File, Forwarded, Frozen, Gateway, GatewayId,
    InputDigest, Invitation, InvitationId, KeyId, Lineage, MediaType, Member, MemberId, Message, MessageId,
    MessageKind, Mission, MissionId, MissionScope, ModelAccess, ModelApi, Pairing, Path, Payload, Pin,
    RoomId, RoomRole, Router, RouterId, Run, RunId, RunState, Scope, Sender, Seq, Service, SignIn, SignInId,
    SiteRole, Task, TaskId, TaskStatus, Time, Upload, UploadId, UploadPurpose, Usage, UserId, Visibility,
};
use std::sync::Arc;

pub type Given = fn(&mut Facts, CallerKind);

/// The room and who the caller is in it; nothing else.
pub const READY: Given = |_, _| {};
pub const NO_ROOM: Given = |facts, _| (facts.room, facts.membership) = (None, None);

pub const A_TASK: Given = |facts, _| facts.task = Some(task(somebody(), None));
pub const TASK_OF_MEMBER: Given = |facts, _| facts.task = Some(task(person("member"), None));
pub const TASK_FOR_MEMBER: Given = |facts, _| facts.task = Some(task(somebody(), Some(person("member"))));
pub const TASK_FOR_CODER: Given = |facts, who| {
    KEEPERS_AGENT_IN_ROOM(facts, who);
    facts.task = Some(task(somebody(), Some(coder_member())));
};
pub const TASK_FOR_CODER_WHO_LEFT: Given = |facts, who| {
    TASK_FOR_CODER(facts, who);
    facts.target = None;
};
pub const TASK_FOR_NOBODY_CODER_IN_ROOM: Given = |facts, who| {
    KEEPERS_AGENT_IN_ROOM(facts, who);
    A_TASK(facts, who);
};
pub const FROZEN_BY_MEMBER: Given = |facts, _| frozen(facts, CallerKind::Member.user());
pub const FROZEN_BY_OPERATOR: Given = |facts, _| frozen(facts, None);

pub const MISSION_OF_ANOTHER_ROOM: Given = |facts, _| {
    facts.mission = Some(Mission {
        id: MissionId::stored("m"),
        mission_scope: MissionScope::Global,
        room: RoomId::stored("kitchen"),
        text: "Tea".into(),
        agents: Vec::new(),
        created_by: UserId::stored("ann"),
        created_at: Time(1),
        ended_at: None,
        prompts: 0,
    });
};

pub const AGENT_IN_ROOM_ABOUT_A_FOLDER: Given = |facts, who| {
    ANOTHERS_AGENT_IN_ROOM(facts, who);
    ABOUT_A_FOLDER(facts, who);
    MISSION_OF_ANOTHER_ROOM(facts, who);
};
pub const OWN_MISSION_IN_A_FOLDER: Given = |facts, who| {
    AGENT_IN_ROOM_ABOUT_A_FOLDER(facts, who);
    if let (Some(mission), Some(own)) = (&mut facts.mission, who.user()) {
        mission.created_by = own;
    }
};

pub const FOLDER_SET_FREE: Given = |facts, _| facts.root_allowed = true;
pub const ABOUT_A_FOLDER: Given = |facts, who| {
    ABOUT_A_FOLDER_TAKEN_BACK(facts, who);
    FOLDER_SET_FREE(facts, who);
};
pub const ABOUT_A_FOLDER_TAKEN_BACK: Given = |facts, _| {
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).project_root = Some("/srv/code".into());
    }
};
pub const IN_A_ROOM_ABOUT_IT: Given = |facts, who| {
    IN_A_ROOM_ABOUT_WHAT_WAS_TAKEN_BACK(facts, who);
    FOLDER_SET_FREE(facts, who);
};
pub const IN_A_ROOM_ABOUT_WHAT_WAS_TAKEN_BACK: Given = |facts, _| {
    let room = facts.room.as_deref().cloned().expect("there is one");
    let (member, everyone) = (member(somebody(), RoomRole::Member), Arc::new([]));
    facts.memberships.push(Membership { room, member, everyone, newest: None });
};

pub const SOMEONE: Given = |facts, _| facts.user = Some(user(&someone(), SiteRole::User));
pub const SOME_ADMIN: Given = |facts, _| facts.user = Some(user(&someone(), SiteRole::Admin));
pub const OWN_DEVICE: Given = |facts, who| facts.sign_in = who.user().map(device);
pub const ANOTHERS_DEVICE: Given = |facts, _| facts.sign_in = Some(device(someone()));
pub const OWN_KEY: Given = |facts, who| facts.key = who.user().map(key);
pub const ANOTHERS_KEY: Given = |facts, _| facts.key = Some(key(someone()));

pub const OWN_ROUTER: Given = |facts, who| facts.router = who.user().map(|user| router(user, false));
pub const ANOTHERS_ROUTER: Given = |facts, _| facts.router = Some(router(someone(), false));
pub const SHARED_ROUTER: Given = |facts, _| facts.router = Some(router(someone(), true));

/// Of somebody else: every admin sets them up.
pub const A_SERVICE: Given = |facts, _| {
    facts.agent = Some(agent(someone()));
    facts.service = Some(Service {
        agent: AgentId::stored("coder"),
        active: true,
        model: router(someone(), true).model,
        fallback: None,
        instructions: None,
        most_tokens: None,
        updated_at: Time(1),
    });
};
/// Which nobody made answer from within the hub.
pub const NO_SERVICE: Given = |facts, who| facts.agent = who.user().map(agent);

/// Made by whoever runs the hub.
pub const INVITATION: Given = |facts, _| facts.invitation = Some(invitation(None));
pub const INVITATION_OF_AN_ADMIN: Given = |facts, _| {
    facts.invitation = Some(invitation(Some(someone())));
    facts.user = Some(user(&someone(), SiteRole::Admin));
};
pub const INVITATION_OF_NO_ADMIN: Given = |facts, who| {
    INVITATION_OF_AN_ADMIN(facts, who);
    SOMEONE(facts, who);
};
pub const INVITATION_OF_SOMEONE_GONE: Given = |facts, _| facts.invitation = Some(invitation(Some(someone())));
pub const SPENT_INVITATION: Given =
    |facts, _| facts.invitation = Some(Invitation { uses_left: 0, ..invitation(None) });
pub const OLD_INVITATION: Given =
    |facts, _| facts.invitation = Some(Invitation { expires_at: facts.now, ..invitation(None) });

pub const PAIRING: Given = |facts, who| {
    PAIRING_OF_SOMEONE_GONE(facts, who);
    facts.user = Some(user(&someone(), SiteRole::User));
};
pub const PAIRING_OF_SOMEONE_GONE: Given =
    |facts, _| facts.pairing = Some(Pairing { user: someone(), expires_at: Time(5_000) });
pub const OLD_PAIRING: Given = |facts, who| {
    PAIRING(facts, who);
    facts.pairing = Some(Pairing { user: someone(), expires_at: facts.now });
};

/// One that is good but for the setting.
pub const NO_INVITATIONS: Given = |facts, who| {
    INVITATION(facts, who);
    facts.settings.invitations = Some(false);
};

pub const A_MEMBER: Given = |facts, _| facts.target = Some(member(somebody(), RoomRole::Member));
pub const AN_ADMIN: Given = |facts, _| facts.target = Some(member(somebody(), RoomRole::Admin));
pub const THE_OWNER: Given = |facts, _| facts.target = Some(member(somebody(), RoomRole::Owner));
pub const THE_MEMBER_COLUMN: Given =
    |facts, _| facts.target = Some(member(person("member"), RoomRole::Member));
pub const THE_ADMIN_COLUMN: Given = |facts, _| facts.target = Some(member(person("admin"), RoomRole::Admin));
pub const AN_AGENT: Given = |facts, _| facts.target = Some(member(coder_member(), RoomRole::Member));

pub const OWN_AGENT: Given = |facts, who| facts.agent = who.user().map(agent);
pub const ANOTHERS_AGENT: Given = |facts, _| facts.agent = Some(agent(someone()));
pub const OWN_AGENT_IN_ROOM: Given = |facts, who| {
    OWN_AGENT(facts, who);
    AN_AGENT(facts, who);
};
pub const ANOTHERS_AGENT_IN_ROOM: Given = |facts, who| {
    ANOTHERS_AGENT(facts, who);
    AN_AGENT(facts, who);
};
/// Somebody else's agent in the room, which only admins may command there.
pub const ADMINS_COMMAND_AGENTS: Given = |facts, who| {
    ANOTHERS_AGENT_IN_ROOM(facts, who);
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).agent_command_role = RoomRole::Admin;
    }
};
pub const ANOTHERS_AGENT_IN_A_FROZEN_ROOM: Given = |facts, who| {
    ANOTHERS_AGENT_IN_ROOM(facts, who);
    FROZEN_BY_OPERATOR(facts, who);
};
/// The agent that the column `keeper`, and the person behind the keys, answers for.
pub const KEEPERS_AGENT: Given = |facts, _| facts.agent = CallerKind::Keeper.user().map(agent);
pub const HUBS_AGENT: Given = |facts, who| {
    KEEPERS_AGENT(facts, who);
    if let Some(agent) = &mut facts.agent {
        agent.host.gateway = Some(GatewayId::stored("hub"));
    }
};
pub const KEEPERS_AGENT_IN_ROOM: Given = |facts, who| {
    KEEPERS_AGENT(facts, who);
    AN_AGENT(facts, who);
};
pub const KEEPERS_AGENT_NO_ROOM: Given = |facts, who| {
    KEEPERS_AGENT(facts, who);
    NO_ROOM(facts, who);
};
pub const OWN_AGENT_OF_ANOTHER_NAME: Given = |facts, who| {
    facts.agent = who.user().map(|owner| Agent { id: AgentId::stored("other"), ..agent(owner) });
};

/// Somebody else's, which they share with everybody.
pub const AGENT_SHARED_WITH_ALL: Given =
    |facts, _| facts.agent = Some(Agent { visibility: Visibility::All, ..agent(someone()) });
/// Somebody else's, which they share with the column `admin`.
pub const AGENT_SHARED_WITH_ADMIN: Given = |facts, _| {
    let visibility = Visibility::List(vec![UserId::stored("admin")]);
    facts.agent = Some(Agent { visibility, ..agent(someone()) });
};

pub const KEEPERS_GATEWAY: Given = |facts, _| facts.gateway = CallerKind::Keeper.user().map(gateway);
pub const OWN_GATEWAY: Given = |facts, who| facts.gateway = who.user().map(gateway);
/// The name of the hub's own, taken by somebody before it was kept for it.
pub const OWN_GATEWAY_NAMED_HUB: Given = |facts, who| {
    facts.gateway = who.user().map(|owner| Gateway { id: GatewayId::stored("hub"), ..gateway(owner) });
};
pub const OWN_GATEWAY_KEEPERS_AGENT: Given = |facts, who| {
    OWN_GATEWAY(facts, who);
    KEEPERS_AGENT(facts, who);
};
pub const OWN_GATEWAY_KEEPERS_AGENTS_AROUND: Given = |facts, who| {
    OWN_GATEWAY(facts, who);
    KEEPERS_AGENTS_AROUND(facts, who);
};
pub const KEEPERS_GATEWAY_OWN_AGENT: Given = |facts, who| {
    KEEPERS_GATEWAY(facts, who);
    OWN_AGENT(facts, who);
};

/// Agents above and below the name in question.
pub const OWN_AGENTS_AROUND: Given =
    |facts, who| facts.relatives = who.user().map(agent).into_iter().collect();
pub const KEEPERS_AGENTS_AROUND: Given = |facts, _| OWN_AGENTS_AROUND(facts, CallerKind::Keeper);
pub const ANOTHERS_AGENT_AMONG_OWN_AROUND: Given = |facts, who| {
    OWN_AGENTS_AROUND(facts, who);
    facts.relatives.push(agent(someone()));
};

/// The keys are as they were, their owner is no admin any more.
pub const OWNER_OF_KEYS_DEMOTED: Given = |facts, _| {
    NO_ROOM(facts, CallerKind::KeyWith);
    let standing = facts.standing.as_deref().cloned().filter(|standing| standing.scopes.is_some());
    if let Some(standing) = standing {
        let user = user(&standing.user.id, SiteRole::User);
        facts.standing = Some(Arc::new(AuthContext { user, ..standing }));
    }
};
pub const ACQUAINTED: Given = |facts, who| {
    ANOTHERS_AGENT(facts, who);
    facts.agent_visible = true;
};

/// The keys have neither the scope of admins nor one made for this.
pub const KEYS_READ_ONLY: Given = |facts, _| {
    let standing = facts.standing.as_deref().cloned();
    let keys = standing.map(|standing| AuthContext {
        scopes: standing.scopes.as_ref().map(|_| vec![Scope::Read]),
        ..standing
    });
    facts.standing = keys.map(Arc::new);
};

pub const OWN_MESSAGE: Given =
    |facts, who| facts.message = Some(message(Sender::User(who.user().unwrap_or_else(someone))));
pub const ANOTHERS_MESSAGE: Given = |facts, _| facts.message = Some(message(Sender::User(someone())));
/// Of an agent that the caller owns: what it said is not the owner's own word.
pub const OWN_AGENTS_MESSAGE: Given = |facts, who| {
    OWN_AGENT(facts, who);
    facts.message = Some(message(Sender::Agent(AgentId::stored("coder"))));
};
pub const MESSAGE_ON_A_PATH: Given = |facts, who| {
    NO_ROOM(facts, who);
    let place = Destination::Path(Path::stored("slack/team"));
    let message = message(Sender::Source("slack-bridge".into()));
    facts.message = Some(Arc::new(Message { destination: place, ..Message::clone(&message) }));
};

/// Said before the caller cleared the room.
pub const MESSAGE_CLEARED_AWAY: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    cleared(&mut facts.membership);
};
/// What the caller passed on, in the words of another.
pub const OWN_FORWARDED_MESSAGE: Given = |facts, who| {
    let own = message(Sender::User(who.user().unwrap_or_else(someone)));
    let from = Forwarded {
        message: MessageId::stored("first"),
        sender: Sender::User(someone()),
        sender_name: "Sender".into(),
        at: Time(4),
    };
    facts.message = Some(Arc::new(Message { forwarded: Some(Box::new(from)), ..Message::clone(&own) }));
};

/// The message to pass on is in another room, where the caller is too.
pub const MESSAGE_IN_BOTH: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    facts.source = facts.membership.clone();
};
/// Everybody sees the message; in the room it shall go to each is what they are.
pub const MESSAGE_SEEN_BY_ALL: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    facts.source = who.user().map(|user| Arc::new(member(MemberId::User(user), RoomRole::Member)));
};
pub const MESSAGE_CLEARED_THERE: Given = |facts, who| {
    MESSAGE_IN_BOTH(facts, who);
    cleared(&mut facts.source);
};

/// What follows is what agents said, and the caller.
pub const OWN_MESSAGE_AND_ANSWERS: Given = |facts, who| {
    OWN_MESSAGE(facts, who);
    let answer = message(Sender::Agent(AgentId::stored("coder")));
    facts.messages_from_target = facts.message.iter().cloned().chain([answer]).collect();
};
pub const OWN_MESSAGE_AND_ANOTHERS: Given = |facts, who| {
    OWN_MESSAGE_AND_ANSWERS(facts, who);
    facts.messages_from_target.push(message(Sender::User(someone())));
};
pub const OWN_MESSAGE_ADMINS_COMMAND_AGENTS: Given = |facts, who| {
    ADMINS_COMMAND_AGENTS(facts, who);
    OWN_MESSAGE_AND_ANSWERS(facts, who);
};

/// Two messages of the caller's own.
pub const OWN_MESSAGES: Given = |facts, who| {
    OWN_MESSAGE(facts, who);
    facts.batch = vec![(facts.message.clone(), facts.membership.clone()); 2];
};
/// The second of them is somebody else's.
pub const ANOTHERS_MESSAGE_AMONG_OWN: Given = |facts, who| {
    OWN_MESSAGES(facts, who);
    ANOTHERS_MESSAGE(facts, who);
    facts.batch[1].0 = facts.message.clone();
};
/// The second of them is not there, or in a room that the caller is not in.
pub const NO_MESSAGE_AMONG_OWN: Given = |facts, who| {
    OWN_MESSAGES(facts, who);
    facts.batch[1].0 = None;
};
pub const FOREIGN_MESSAGE_AMONG_OWN: Given = |facts, who| {
    OWN_MESSAGES(facts, who);
    facts.batch[1].1 = None;
};

pub const OWN_PIN: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    facts.pin = Some(pin(who.user().unwrap_or_else(someone)));
};
pub const ANOTHERS_PIN: Given = |facts, who| {
    ANOTHERS_MESSAGE(facts, who);
    facts.pin = Some(pin(someone()));
};

pub const A_RUN: Given = |facts, _| facts.run = Some(run());
pub const A_RUN_IN_NO_ROOM: Given = |facts, who| {
    A_RUN(facts, who);
    NO_ROOM(facts, who);
};

fn run() -> Run {
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

pub const QUESTION: Given = |facts, _| facts.approval = Some(question());
pub const QUESTION_FOR_ADMINS: Given = |facts, who| {
    QUESTION(facts, who);
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).approve_role = RoomRole::Admin;
    }
};
pub const ADMINS_APPROVE: Given = |facts, _| {
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).approve_role = RoomRole::Admin;
    }
};
/// Of an agent that the caller answers for: that counts for nothing.
pub const QUESTION_OF_OWN_AGENT: Given = |facts, who| {
    QUESTION(facts, who);
    OWN_AGENT(facts, who);
};
pub const QUESTION_IN_NO_ROOM: Given = |facts, who| {
    QUESTION(facts, who);
    NO_ROOM(facts, who);
};
pub const OWN_RULE: Given = |facts, who| facts.rule = Some(rule(who.user().unwrap_or_else(someone)));
pub const ANOTHERS_RULE: Given = |facts, _| facts.rule = Some(rule(someone()));

fn question() -> Approval {
    Approval {
        id: ApprovalId::stored("approval"),
        run: RunId::stored("run"),
        room: lobby(),
        agent: AgentId::stored("coder"),
        agent_name: "Coder".into(),
        gateway: GatewayId::stored("gateway"),
        request: "1".into(),
        tool: "Bash".into(),
        kind: ApprovalKind::Tool,
        input: Payload("{}".into()),
        digest: InputDigest([1; 32]),
        asked_at: Time(5),
        expires_at: Time(6),
        decision: None,
        decided_at: None,
    }
}

fn rule(by: UserId) -> ApprovalRule {
    ApprovalRule { room: lobby(), agent: AgentId::stored("coder"), tool: "Bash".into(), by, at: Time(5) }
}

fn cleared(membership: &mut Option<Arc<Member>>) {
    if let Some(own) = membership {
        Arc::make_mut(own).room_preferences.cleared_through = Seq(5);
    }
}

fn pin(by: UserId) -> Pin {
    Pin { room: lobby(), message: MessageId::stored("message"), by, seq: Seq(6), at: Time(6) }
}

/// Its owner is whoever the row is about: on a message that counts for nothing.
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
    |facts, _| facts.uploads = vec![upload(Some(someone()), UploadPurpose::Unattached)];
pub const AN_AVATAR: Given = |facts, _| facts.uploads = vec![upload(Some(someone()), UploadPurpose::Avatar)];

fn upload(owner: Option<UserId>, purpose: UploadPurpose) -> Upload {
    Upload {
        id: UploadId::stored("upload"),
        owner: owner.unwrap_or_else(someone),
        file: File { name: "cat.png".into(), media: MediaType::Png, size: 3 },
        digest: BlobDigest([3; 32]),
        created_at: Time(1),
        purpose,
    }
}

fn device(user: UserId) -> SignIn {
    SignIn {
        id: SignInId::stored("device"),
        user,
        device: "phone".into(),
        address: "127.0.0.1".into(),
        created_at: Time(1),
        used_at: Time(1),
        expires_at: Time(5_000),
        generation: 0,
    }
}

fn router(created_by: UserId, shared: bool) -> Router {
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

fn key(owner: UserId) -> ApiKey {
    let (id, scopes) = (KeyId::stored("key"), vec![Scope::Read]);
    ApiKey { id, owner, name: "script".into(), scopes, created_at: Time(1) }
}

fn agent(owner: UserId) -> Agent {
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

fn task(created_by: MemberId, assignee: Option<MemberId>) -> Task {
    Task {
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
    }
}

fn frozen(facts: &mut Facts, by: Option<UserId>) {
    if let Some(room) = &mut facts.room {
        Arc::make_mut(room).frozen = Some(Frozen { by, at: Time(1) });
    }
}

fn gateway(owner: UserId) -> Gateway {
    Gateway {
        id: GatewayId::stored("laptop"),
        owner,
        device: Device::default(),
        ephemeral: false,
        connected_at: Time(1),
        disconnected_at: None,
        pending_removals: Vec::new(),
    }
}

fn message(sender: Sender) -> Arc<Message> {
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
    })
}
