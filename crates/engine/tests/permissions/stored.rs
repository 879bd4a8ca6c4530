//! Rows that commands and queries with a type of their own read from the store, besides those of the caller.

use crate::callers::{CallerKind, coder_member, lobby, member, other_member, other_user, person, room, user};
use crate::fixtures::{message, run};
use parlor_engine::changes::{
    AccountChange, AgentChange, AnnotationChange, ApprovalChange, Change, CredentialChange, MailChange,
    MessageChange, RoomChange, RunChange, SettingsChange, TaskChange, UploadChange,
};
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, ApprovalSubject, BlobDigest, CurrentPlan,
    Delivery, DeliveryState, Destination, File, Forwarded, GatewayId, HubSettings, InputDigest, Invitation,
    InvitationId, KeyId, Mailbox, MediaType, Member, MemberId, Message, MessageId, Pairing, Path, Payload,
    Pin, Plan, PlanState, Room, RoomId, RoomInvitation, RoomRole, RunId, RunPlace, Scope, SealedKey,
    SecretHash, Sender, Seq, SessionId, SiteRole, Task, TaskId, TaskPriority, TaskStatus, Time, Upload,
    UploadId, UploadPurpose, UserId, Visibility,
};
use std::sync::Arc;

pub type Stored = fn(CallerKind) -> Vec<Change>;

/// The room and the caller's membership only.
pub const READY: Stored = |_| Vec::new();
pub const NO_ROOM: Stored = |_| vec![Change::Room(RoomChange::RemoveRoom(lobby()))];

pub const NO_OTHER_USER: Stored = |_| vec![Change::Account(AccountChange::RemoveUser(other_user()))];
pub const OTHER_ADMIN: Stored =
    |_| vec![Change::Account(AccountChange::PutUser(Arc::new(user(&other_user(), SiteRole::Admin))))];

pub const ADMINS_APPROVE: Stored = |_| {
    let room = Room { approve_role: RoomRole::Admin, ..room() };
    vec![Change::Room(RoomChange::PutRoom(Arc::new(room)))]
};

pub const LOBBY_AT_ROOT: Stored = |_| {
    let room = Room { project_root: Some("/srv/code".into()), ..room() };
    vec![Change::Room(RoomChange::PutRoom(Arc::new(room)))]
};
/// Two rooms with the same project root. The members of the lobby are members of both.
pub const LOBBY_AND_OTHER_AT_ROOT: Stored = |who| {
    let elsewhere =
        Room { id: RoomId::stored("elsewhere"), project_root: Some("/srv/code".into()), ..room() };
    let mut changes = LOBBY_AT_ROOT(who);
    changes.push(Change::Room(RoomChange::PutRoom(Arc::new(elsewhere))));
    changes.extend(who.own_member().map(|own| put_member_elsewhere(own, Seq(0))));
    changes
};

pub const ANOTHERS_MESSAGE: Stored =
    |_| vec![Change::Message(MessageChange::PutMessage(message(Sender::User(other_user()))))];
pub const MESSAGE_CLEARED_AWAY: Stored = |who| {
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.extend(who.own_member().map(|mut own| {
        own.room_preferences.cleared_through = message(Sender::User(other_user())).seq;
        Change::Room(RoomChange::PutMember(Arc::new(own)))
    }));
    changes
};
pub const MESSAGE_ON_A_PATH: Stored = |_| {
    let destination = Destination::Path(Path::stored("slack/team"));
    let on_path = Message { destination, ..Message::clone(&message(Sender::Source("bridge".into()))) };
    vec![Change::Message(MessageChange::PutMessage(Arc::new(on_path)))]
};

pub const OWN_MESSAGE: Stored = |who| vec![Change::Message(MessageChange::PutMessage(own_message(who)))];
/// A message of the caller's own agent, which is not a message of the caller.
pub const OWN_AGENTS_MESSAGE: Stored = |who| {
    let mut changes = CHAT_WITH_OWN_AGENT(who);
    changes
        .push(Change::Message(MessageChange::PutMessage(message(Sender::Agent(AgentId::stored("coder"))))));
    changes
};
/// A message that the caller forwarded from another user.
pub const OWN_FORWARDED_MESSAGE: Stored = |who| {
    let from = Forwarded {
        message: MessageId::stored("first"),
        sender: Sender::User(other_user()),
        sender_name: "Sender".into(),
        at: Time(4),
    };
    let forwarded = Message { forwarded: Some(Box::new(from)), ..Message::clone(&own_message(who)) };
    vec![Change::Message(MessageChange::PutMessage(Arc::new(forwarded)))]
};

/// The caller's own message, followed by agents' replies only.
pub const OWN_MESSAGE_AND_ANSWERS: Stored = |who| {
    let answer = message(Sender::Agent(AgentId::stored("coder")));
    vec![Change::Message(MessageChange::PutMessage(own_message(who))), put_later("answer", 6, &answer)]
};
pub const OWN_MESSAGE_AND_ANOTHERS: Stored = |who| {
    let mut changes = OWN_MESSAGE_AND_ANSWERS(who);
    changes.push(put_later("other", 7, &message(Sender::User(other_user()))));
    changes
};
pub const OWN_MESSAGE_ADMINS_COMMAND_AGENTS: Stored = |who| {
    let room = Room { agent_command_role: RoomRole::Admin, ..room() };
    let mut changes = OWN_MESSAGE_AND_ANSWERS(who);
    changes.push(Change::Room(RoomChange::PutRoom(Arc::new(room))));
    changes
};

/// Two messages of the caller.
pub const OWN_MESSAGES: Stored = |who| {
    let own = own_message(who);
    vec![Change::Message(MessageChange::PutMessage(own.clone())), put_later("other", 6, &own)]
};
/// Two messages, of which the second is another user's.
pub const ANOTHERS_MESSAGE_AMONG_OWN: Stored = |who| {
    let others = message(Sender::User(other_user()));
    vec![Change::Message(MessageChange::PutMessage(own_message(who))), put_later("other", 6, &others)]
};
/// Two messages of the caller, of which the second is in a room that the caller is not a member of.
pub const FOREIGN_MESSAGE_AMONG_OWN: Stored = |who| {
    let own = own_message(who);
    vec![
        put_other_room(),
        Change::Message(MessageChange::PutMessage(own.clone())),
        put_later("other", 6, &elsewhere(&own)),
    ]
};

/// A message in another room that the caller is not a member of.
pub const MESSAGE_ELSEWHERE: Stored = |_| {
    let elsewhere = elsewhere(&message(Sender::User(other_user())));
    vec![put_other_room(), Change::Message(MessageChange::PutMessage(Arc::new(elsewhere)))]
};
/// A message in another room. The members of the lobby are members there, too.
pub const MESSAGE_IN_BOTH: Stored = |who| {
    let mut changes = MESSAGE_ELSEWHERE(who);
    changes.extend(who.own_member().map(|own| put_member_elsewhere(own, Seq(0))));
    changes
};
/// A message in another room, which the members of the lobby have cleared.
pub const MESSAGE_CLEARED_THERE: Stored = |who| {
    let mut changes = MESSAGE_ELSEWHERE(who);
    changes.extend(who.own_member().map(|own| put_member_elsewhere(own, Seq(5))));
    changes
};
/// A message in another room, where all callers with an account are members.
pub const MESSAGE_SEEN_BY_ALL: Stored = |who| {
    let mut changes = MESSAGE_ELSEWHERE(who);
    let own = who.user().map(|user| member(MemberId::User(user), RoomRole::Member));
    changes.extend(own.map(|own| put_member_elsewhere(own, Seq(0))));
    changes
};

pub const CHAT_WITH_OWN_AGENT: Stored = |who| {
    who.user()
        .map(|user| Change::Agent(AgentChange::PutAgent(Arc::new(chat_partner(user)))))
        .into_iter()
        .collect()
};
/// The caller's own agent, as a member of the room.
pub const OWN_AGENT_IN_ROOM: Stored = |who| {
    let mut changes = CHAT_WITH_OWN_AGENT(who);
    changes.push(Change::Room(RoomChange::PutMember(Arc::new(member(coder_member(), RoomRole::Member)))));
    changes
};
pub const CHAT_WITH_AGENT_OWNERS_AGENT: Stored = |_| CHAT_WITH_OWN_AGENT(CallerKind::AgentOwner);
pub const CHAT_WITH_SHARED_AGENT: Stored = |_| {
    let shared = Agent { visibility: Visibility::All, ..chat_partner(other_user()) };
    vec![Change::Agent(AgentChange::PutAgent(Arc::new(shared)))]
};

fn chat_partner(owner: UserId) -> Agent {
    Agent {
        id: AgentId::stored("coder"),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    }
}

fn own_message(who: CallerKind) -> Arc<Message> {
    message(Sender::User(who.user().unwrap_or_else(other_user)))
}

/// Stores a copy of a message with another id and position.
fn put_later(id: &str, seq: u64, message: &Message) -> Change {
    let later = Message { id: MessageId::stored(id), seq: Seq(seq), ..message.clone() };
    Change::Message(MessageChange::PutMessage(Arc::new(later)))
}

fn elsewhere(message: &Message) -> Message {
    Message { destination: Destination::Room(RoomId::stored("elsewhere")), ..message.clone() }
}

fn put_other_room() -> Change {
    Change::Room(RoomChange::PutRoom(Arc::new(Room { id: RoomId::stored("elsewhere"), ..room() })))
}

fn put_member_elsewhere(member: Member, cleared_through: Seq) -> Change {
    let mut member = Member { room: RoomId::stored("elsewhere"), ..member };
    member.room_preferences.cleared_through = cleared_through;
    Change::Room(RoomChange::PutMember(Arc::new(member)))
}

pub const OWN_PIN: Stored = |who| pinned_by(who, who.user().unwrap_or_else(other_user));
pub const ANOTHERS_PIN: Stored = |who| pinned_by(who, other_user());

fn pinned_by(who: CallerKind, by: UserId) -> Vec<Change> {
    let pin = Pin { room: lobby(), message: MessageId::stored("message"), by, seq: Seq(6), at: Time(6) };
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.push(Change::Annotation(AnnotationChange::PutPin(pin)));
    changes
}

/// The keys of the caller have neither the admin scope nor the one for this query.
pub const KEYS_READ_ONLY: Stored = |who| match (who, who.user()) {
    (CallerKind::KeyWithout | CallerKind::KeyWith, Some(owner)) => {
        let (id, scopes) = (KeyId::stored("key"), vec![Scope::Read]);
        let key = ApiKey { id, owner, name: "script".into(), scopes, grant: None, created_at: Time(1) };
        vec![Change::Credential(CredentialChange::PutKey(Arc::new(key), SecretHash([1; 32])))]
    }
    _ => Vec::new(),
};

pub const INVITATION_TOKEN: SecretHash = SecretHash([7; 32]);
pub const PAIRING_CODE: SecretHash = SecretHash([7; 32]);

/// An invitation created by the operator.
pub const INVITATION: Stored = |_| vec![put_invitation(invitation(None))];
pub const INVITATION_OF_AN_ADMIN: Stored = |who| {
    let mut changes = INVITATION_OF_FORMER_ADMIN(who);
    changes.push(Change::Account(AccountChange::PutUser(Arc::new(user(&other_user(), SiteRole::Admin)))));
    changes
};
pub const INVITATION_OF_FORMER_ADMIN: Stored = |_| vec![put_invitation(invitation(Some(other_user())))];
pub const INVITATION_OF_REMOVED_USER: Stored = |_| vec![put_invitation(invitation(Some(removed_user())))];
pub const SPENT_INVITATION: Stored =
    |_| vec![put_invitation(Invitation { uses_left: 0, ..invitation(None) })];
pub const EXPIRED_INVITATION: Stored =
    |_| vec![put_invitation(Invitation { expires_at: Time(1_000), ..invitation(None) })];
/// A valid invitation, while the setting forbids invitations.
pub const NO_INVITATIONS: Stored = |who| {
    let settings = HubSettings { invitations: Some(false), ..HubSettings::default() };
    let mut changes = INVITATION(who);
    changes.push(Change::Settings(SettingsChange::PutSettings(Arc::new(settings))));
    changes
};

/// An invitation to the room by another user, who is an admin of it.
pub const ROOM_INVITATION: Stored = |_| room_invitation(RoomRole::Admin, RoomRole::Member, Time(5_000));
pub const ADMINS_INVITATION_OF_ADMIN: Stored =
    |_| room_invitation(RoomRole::Admin, RoomRole::Admin, Time(5_000));
pub const OWNERS_INVITATION_OF_ADMIN: Stored =
    |_| room_invitation(RoomRole::Owner, RoomRole::Admin, Time(5_000));
pub const ROOM_INVITATION_OF_FORMER_ADMIN: Stored =
    |_| room_invitation(RoomRole::Member, RoomRole::Member, Time(5_000));
pub const EXPIRED_ROOM_INVITATION: Stored =
    |_| room_invitation(RoomRole::Admin, RoomRole::Member, Time(1_000));
pub const ROOM_INVITATION_OF_REMOVED_MEMBER: Stored = |who| {
    let mut changes = ROOM_INVITATION(who);
    changes.push(Change::Room(RoomChange::RemoveMember(lobby(), other_member())));
    changes
};
pub const INVITATION_TO_REMOVED_ROOM: Stored = |who| {
    let mut changes = ROOM_INVITATION(who);
    changes.extend(NO_ROOM(who));
    changes
};

/// An invitation to the room by another user, with this role in the room.
fn room_invitation(creator: RoomRole, role: RoomRole, expires_at: Time) -> Vec<Change> {
    let invitation = RoomInvitation {
        id: InvitationId::stored("invitation"),
        room: lobby(),
        role,
        token: SealedKey([1].into()),
        created_by: other_user(),
        created_at: Time(1),
        expires_at,
    };
    vec![
        Change::Room(RoomChange::PutMember(Arc::new(member(other_member(), creator)))),
        Change::Account(AccountChange::PutRoomInvitation(Arc::new(invitation), INVITATION_TOKEN)),
    ]
}

pub const PAIRING: Stored = |_| vec![put_pairing(other_user(), Time(5_000))];
pub const EXPIRED_PAIRING: Stored = |_| vec![put_pairing(other_user(), Time(1_000))];
pub const PAIRING_OF_REMOVED_USER: Stored = |_| vec![put_pairing(removed_user(), Time(5_000))];

fn removed_user() -> UserId {
    UserId::stored("removed_user")
}

fn put_invitation(invitation: Invitation) -> Change {
    Change::Account(AccountChange::PutInvitation(Arc::new(invitation), INVITATION_TOKEN))
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

fn put_pairing(user: UserId, expires_at: Time) -> Change {
    Change::Account(AccountChange::PutPairing(Pairing { user, expires_at }, PAIRING_CODE))
}

/// The agent `coder` of the column `AgentOwner`, outside the room.
pub const TASK_AGENT: Stored = CHAT_WITH_AGENT_OWNERS_AGENT;
pub const TASK_AGENT_IN_ROOM: Stored = |who| {
    let mut changes = TASK_AGENT(who);
    changes.push(Change::Room(RoomChange::PutMember(Arc::new(member(coder_member(), RoomRole::Member)))));
    changes
};
pub const TASK_AGENT_NO_ROOM: Stored = |who| {
    let mut changes = TASK_AGENT(who);
    changes.extend(NO_ROOM(who));
    changes
};
pub const A_TASK: Stored = |_| put_task(other_member(), None);
pub const TASK_OF_MEMBER: Stored = |_| put_task(person("member"), None);
pub const TASK_FOR_MEMBER: Stored = |_| put_task(other_member(), Some(person("member")));
pub const TASK_FOR_CODER: Stored = |who| {
    let mut changes = TASK_AGENT_IN_ROOM(who);
    changes.extend(put_task(other_member(), Some(coder_member())));
    changes
};
pub const TASK_FOR_CODER_WHO_LEFT: Stored = |who| {
    let mut changes = TASK_AGENT(who);
    changes.extend(put_task(other_member(), Some(coder_member())));
    changes
};
pub const UNASSIGNED_TASK_CODER_IN_ROOM: Stored = |who| {
    let mut changes = TASK_AGENT_IN_ROOM(who);
    changes.extend(A_TASK(who));
    changes
};

fn put_task(created_by: MemberId, assignee: Option<MemberId>) -> Vec<Change> {
    let task = Task {
        id: TaskId::stored("task"),
        room: lobby(),
        title: "Tidy up".into(),
        description: None,
        status: TaskStatus::Pending,
        priority: TaskPriority::Medium,
        result: None,
        due_at: None,
        assignee,
        parent: None,
        created_by,
        created_at: Time(1),
        updated_at: Time(1),
    };
    vec![Change::Task(TaskChange::PutTask(Arc::new(task)))]
}

pub const PLANNED_RUN: Stored = |_| vec![Change::Run(RunChange::PutRun(Arc::new(run())))];

/// An undecided plan of the agent `coder`.
pub const A_PLAN: Stored = |_| vec![put_plan(lobby(), PlanState::Planned)];
pub const A_DECIDED_PLAN: Stored = |_| vec![put_plan(lobby(), PlanState::Rejected)];
pub const A_PLAN_ADMINS_APPROVE: Stored = |who| {
    let mut changes = A_PLAN(who);
    changes.extend(ADMINS_APPROVE(who));
    changes
};
/// Undecided plans of the agent `coder` in two rooms. The members of the lobby are members of both.
pub const TWO_PLANS: Stored = |who| {
    let mut changes = LOBBY_AND_OTHER_AT_ROOT(who);
    changes.extend([lobby(), RoomId::stored("elsewhere")].map(|room| put_plan(room, PlanState::Planned)));
    changes
};

fn put_plan(room: RoomId, state: PlanState) -> Change {
    let plan = CurrentPlan {
        room,
        agent: AgentId::stored("coder"),
        run: RunId::stored("run"),
        plan: Plan { summary: "".into(), state, steps: Vec::new(), text: None },
        text: None,
        rev: 1,
        at: Time(1),
    };
    Change::Run(RunChange::PutPlan(Arc::new(plan)))
}

pub const APPROVAL: Stored = |_| {
    let approval = Approval {
        id: ApprovalId::stored("approval"),
        run: RunId::stored("run"),
        place: RunPlace::Room(lobby()),
        agent: AgentId::stored("coder"),
        agent_name: "Coder".into(),
        gateway: GatewayId::stored("gateway"),
        request: "1".into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload("{}".into())),
        digest: InputDigest([1; 32]),
        asked_at: Time(5),
        expires_at: Time(6),
        decision: None,
        decided_at: None,
    };
    vec![Change::Approval(ApprovalChange::PutApproval(Arc::new(approval)))]
};
pub const APPROVAL_FOR_ADMINS: Stored = |who| {
    let mut changes = APPROVAL(who);
    changes.extend(ADMINS_APPROVE(who));
    changes
};
/// An approval requested by the caller's own agent, which grants no additional permission.
pub const APPROVAL_OF_OWN_AGENT: Stored = |who| {
    let mut changes = APPROVAL(who);
    changes.extend(CHAT_WITH_OWN_AGENT(who));
    changes
};
pub const APPROVAL_IN_NO_ROOM: Stored = |who| {
    // The store removes the approvals of a room with the room, so the approval is added afterwards.
    let mut changes = NO_ROOM(who);
    changes.extend(APPROVAL(who));
    changes
};
/// An approval without a room of an agent of the column `AgentOwner`.
pub const APPROVAL_IN_A_SESSION: Stored = |who| {
    let mut changes = APPROVAL(who);
    if let (Some(Change::Approval(ApprovalChange::PutApproval(approval))), Some(owner)) =
        (changes.first_mut(), CallerKind::AgentOwner.user())
    {
        Arc::make_mut(approval).place = RunPlace::Session { session: SessionId::main(), room: None, owner };
    }
    changes
};
pub const OWN_APPROVAL_RULE: Stored = |who| put_rule(who.user().unwrap_or_else(other_user));
pub const ANOTHERS_APPROVAL_RULE: Stored = |_| put_rule(other_user());

fn put_rule(by: UserId) -> Vec<Change> {
    let (agent, tool, at) = (AgentId::stored("coder"), "Bash".into(), Time(5));
    vec![Change::Approval(ApprovalChange::PutApprovalRule(ApprovalRule {
        room: lobby(),
        agent,
        tool,
        by,
        at,
    }))]
}

/// The agent `coder` of the column `AgentOwner`, outside the room.
pub const MAIL_AGENT: Stored = |_| mail_agent(CallerKind::AgentOwner);
pub const MAIL_AGENT_NO_ROOM: Stored = |who| [MAIL_AGENT(who), NO_ROOM(who)].concat();
pub const MAIL_AGENT_IN_ROOM: Stored = |who| [MAIL_AGENT(who), coder_joins()].concat();
/// The caller's own agent `coder`.
pub const MAIL_OWN_AGENT_IN_ROOM: Stored = |who| [mail_agent(who), coder_joins()].concat();
/// The caller's own agent, which is not the one that the command names.
pub const MAIL_AGENT_OF_ANOTHER_NAME: Stored =
    |who| who.user().map(|owner| put_agent("other", owner)).into_iter().collect();
/// A dead letter without a mailbox, and one of the mailbox of `coder`, of the same message.
pub const MAIL_LETTERS: Stored = |who| {
    let path = Destination::Path(Path::stored("slack/team"));
    let letter = Message {
        id: MessageId::stored("letter"),
        destination: path,
        ..(*message(Sender::Source("bridge".into()))).clone()
    };
    let (letter, mailbox) = (Arc::new(letter), Mailbox::of(AgentId::stored("coder")));
    let delivery = Delivery {
        message: letter.id.clone(),
        mailbox: mailbox.clone(),
        state: DeliveryState::Pending,
        attempts: 0,
        handled_by: Vec::new(),
    };
    let mut changes = MAIL_AGENT(who);
    changes.extend([
        Change::Message(MessageChange::PutMessage(letter.clone())),
        Change::Mail(MailChange::PutDelivery { delivery, seq: letter.seq }),
        Change::Mail(MailChange::DeadLetterDelivery {
            mailbox,
            message: letter.clone(),
            reason: "not_acknowledged".into(),
        }),
        Change::Mail(MailChange::DeadLetter { message: letter, reason: "no_subscribers" }),
    ]);
    changes
};
/// The keys are unchanged, but their owner is no longer an admin.
pub const MAIL_KEY_OF_FORMER_ADMIN: Stored = |who| match (who, who.user()) {
    (CallerKind::KeyWithout | CallerKind::KeyWith, Some(owner)) => {
        vec![Change::Account(AccountChange::PutUser(Arc::new(user(&owner, SiteRole::User))))]
    }
    _ => Vec::new(),
};
/// The keys have neither the admin scope nor the one for this command.
pub const MAIL_KEY_TO_READ: Stored = |who| match (who, who.user()) {
    (CallerKind::KeyWithout | CallerKind::KeyWith, Some(owner)) => {
        let (id, scopes) = (KeyId::stored("key"), vec![Scope::Read]);
        let key = ApiKey { id, owner, name: "script".into(), scopes, grant: None, created_at: Time(1) };
        vec![Change::Credential(CredentialChange::PutKey(Arc::new(key), SecretHash([1; 32])))]
    }
    _ => Vec::new(),
};

fn mail_agent(owner: CallerKind) -> Vec<Change> {
    owner.user().map(|owner| put_agent("coder", owner)).into_iter().collect()
}

fn put_agent(id: &str, owner: UserId) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(Agent {
        id: AgentId::stored(id),
        owner,
        name: id.into(),
        description: "".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    })))
}

fn coder_joins() -> Vec<Change> {
    vec![Change::Room(RoomChange::PutMember(Arc::new(member(coder_member(), RoomRole::Member))))]
}

/// An upload of the caller on a message of another user; its ownership does not matter there.
pub const UPLOAD_ON_MESSAGE: Stored = |who| {
    let purpose = UploadPurpose::Message(MessageId::stored("message"));
    [ANOTHERS_MESSAGE(who), put_upload(who.user(), purpose)].concat()
};
pub const UPLOAD_ON_MESSAGE_CLEARED_AWAY: Stored =
    |who| [UPLOAD_ON_MESSAGE(who), MESSAGE_CLEARED_AWAY(who)].concat();
pub const UPLOAD_ON_MESSAGE_NO_ROOM: Stored = |who| [UPLOAD_ON_MESSAGE(who), NO_ROOM(who)].concat();
pub const OWN_WAITING_UPLOAD: Stored = |who| put_upload(who.user(), UploadPurpose::Unattached);
pub const ANOTHERS_WAITING_UPLOAD: Stored = |_| put_upload(Some(other_user()), UploadPurpose::Unattached);
pub const AN_AVATAR: Stored = |_| put_upload(Some(other_user()), UploadPurpose::Avatar);

fn put_upload(owner: Option<UserId>, purpose: UploadPurpose) -> Vec<Change> {
    let upload = Upload {
        id: UploadId::stored("upload"),
        owner: owner.unwrap_or_else(other_user),
        file: File { name: "cat.png".into(), media: MediaType::Png, size: 3 },
        digest: BlobDigest([3; 32]),
        created_at: Time(1),
        purpose,
    };
    vec![Change::Upload(UploadChange::PutUpload(Arc::new(upload)))]
}
