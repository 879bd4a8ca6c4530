//! Test entities to put into a store, with non-default values so that a lost field is noticed.

use parlor_engine::changes::{AccountChange, AgentChange, Change, RoomChange};
use parlor_model::query::{MailPage, SearchCursor, SearchMessages};
use parlor_model::run_event::{Choice, Plan, PlanState, PlanStep, Question, QuestionAnswer, StepState};
use parlor_model::{
    Agent, AgentHost, AgentId, Answer, AnswerPolicy, ApiKey, Attachment, BlobDigest, Bookmark, Delivery,
    DeliveryState, Destination, Device, File, Forwarded, Frozen, Gateway, GatewayId, Grant, GrantEntry,
    Invitation, InvitationId, KeyGrant, KeyId, Mailbox, MediaType, Member, MemberId, Mention, Message,
    MessageId, MessageKind, Notifications, Operation, Operations, Origin, Path, Pattern, Payload, Pin,
    Reaction, Reactor, Resource, Room, RoomId, RoomInvitation, RoomKind, RoomPreferences, RoomRole, RouterId,
    Scope, SealedKey, Sender, Seq, Session, SessionId, SignIn, SignInId, SiteRole, Subscription, Time,
    Upload, UploadId, UploadPurpose, User, UserId, Visibility,
};
use std::sync::Arc;

pub fn user_id(id: &str) -> UserId {
    UserId::stored(id)
}

pub fn room_id(id: &str) -> RoomId {
    RoomId::stored(id)
}

pub fn message_id(id: &str) -> MessageId {
    MessageId::stored(id)
}

pub fn agent_id(id: &str) -> AgentId {
    AgentId::stored(id)
}

pub fn person(id: &str) -> MemberId {
    MemberId::User(user_id(id))
}

pub fn agent_member(id: &str) -> MemberId {
    MemberId::Agent(agent_id(id))
}

pub fn user(id: &str, created: i64) -> User {
    User {
        id: user_id(id),
        username: id.into(),
        display_name: format!("Display {id}").into(),
        role: SiteRole::User,
        avatar_url: Some("/uploads/me.png".into()),
        password_hash: format!("hash of {id}").into(),
        second_factor: true,
        failed_sign_ins: 2,
        locked_until: Some(Time(77)),
        max_connections: Some(3),
        source_patterns: ["slack/**", "email/*/x"].map(|pattern| Pattern::parse(pattern).unwrap()).into(),
        agent_tokens_valid_from: Time(created),
        created_at: Time(created),
        updated_at: Time(created + 1),
    }
}

pub fn put_user(id: &str, created: i64) -> Change {
    Change::Account(AccountChange::PutUser(Arc::new(user(id, created))))
}

pub fn sign_in(id: &str, user: &str, expires: i64) -> SignIn {
    SignIn {
        id: SignInId::stored(id),
        user: user_id(user),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        created_at: Time(5),
        used_at: Time(6),
        expires_at: Time(expires),
        generation: 3,
    }
}

pub fn key(id: &str, owner: &str, created: i64) -> ApiKey {
    ApiKey {
        id: KeyId::stored(id),
        owner: user_id(owner),
        name: "script".into(),
        scopes: vec![Scope::Write, Scope::Read],
        grant: None,
        created_at: Time(created),
    }
}

/// A key whose secret signs tokens.
pub fn signing_key(id: &str, owner: &str, created: i64) -> ApiKey {
    let resource = Resource::Below("room/".into());
    let operations = Operations::NONE.with(Operation::Publish).with(Operation::History);
    let places = Arc::new(Grant::new([GrantEntry { resource, operations }]));
    let grant = KeyGrant { places, notation: "{\"jobs\":[\"publish\"]}".into() };
    ApiKey { grant: Some(Arc::new(grant)), ..key(id, owner, created) }
}

pub fn invitation(id: &str, created: i64, expires: i64) -> Invitation {
    Invitation {
        id: InvitationId::stored(id),
        role: SiteRole::Admin,
        note: Some("for Ada".into()),
        uses: 5,
        uses_left: 3,
        created_by: Some(user_id("ann")),
        created_at: Time(created),
        expires_at: Time(expires),
    }
}

pub fn room_invitation(id: &str, room: &str, created: i64, expires: i64) -> RoomInvitation {
    RoomInvitation {
        id: InvitationId::stored(id),
        room: room_id(room),
        role: RoomRole::Admin,
        token: SealedKey([1, 0, 2].into()),
        created_by: user_id("ann"),
        created_at: Time(created),
        expires_at: Time(expires),
    }
}

pub fn room(id: &str) -> Room {
    Room {
        id: room_id(id),
        name: format!("Room {id}").into(),
        kind: RoomKind::Private,
        policy: AnswerPolicy::All,
        system_prompt: Some("be kind".into()),
        agent_command_role: RoomRole::Admin,
        approve_role: RoomRole::Admin,
        router: Some(RouterId::stored("picker")),
        frozen: Some(Frozen { by: Some(user_id("ann")), at: Time(9) }),
        project_root: Some("/srv/a room".into()),
        description: Some("where we \"meet\"".into()),
        created_by: user_id("ann"),
        created_at: Time(8),
        updated_at: Time(9),
    }
}

pub fn put_room(id: &str) -> Change {
    Change::Room(RoomChange::PutRoom(Arc::new(room(id))))
}

/// A membership as the store returns it: with the name that `user` or `agent` of this file sets.
pub fn member(room: &str, member: MemberId, joined: i64) -> Member {
    let name = match &member {
        MemberId::User(id) => format!("Display {id}"),
        MemberId::Agent(id) => format!("Agent {id}"),
    };
    let handle = member.as_str().into();
    Member {
        room: room_id(room),
        member,
        role: RoomRole::Member,
        role_description: None,
        name: name.into(),
        handle,
        joined_at: Time(joined),
        read_through: Seq(0),
        read_at: None,
        room_preferences: Default::default(),
    }
}

/// A membership with every optional field set.
pub fn full_member(room: &str, id: MemberId, joined: i64) -> Member {
    Member {
        role_description: Some("takes \"notes\"".into()),
        read_through: Seq(3),
        read_at: Some(Time(31)),
        room_preferences: RoomPreferences {
            pinned_at: Some(Time(32)),
            archived_at: Some(Time(33)),
            cleared_at: Some(Time(34)),
            cleared_through: Seq(2),
            notifications: Notifications::None,
        },
        ..member(room, id, joined)
    }
}

pub fn put_member(room: &str, id: MemberId, joined: i64) -> Change {
    Change::Room(RoomChange::PutMember(Arc::new(member(room, id, joined))))
}

pub fn agent(id: &str, owner: &str) -> Agent {
    Agent {
        id: agent_id(id),
        owner: user_id(owner),
        name: format!("Agent {id}").into(),
        description: "helps".into(),
        settings: [("model".into(), Payload("\"best\"".into())), ("a \"b\"".into(), Payload("[1]".into()))]
            .into(),
        host: AgentHost {
            gateway: Some(GatewayId::stored("laptop")),
            kind: "codex".into(),
            working_directory: Some("/srv/a b".into()),
            capabilities: vec!["rewind".into(), "\"x\"".into()],
            model: Some("best".into()),
            slash_commands: Some(Payload("[1]".into())),
            mcp_servers: Some(Payload("[]".into())),
            seen_at: Some(Time(5)),
            has_lasting_id: false,
        },
        visibility: Visibility::List(vec![user_id("dora")]),
        created_at: Time(4),
    }
}

pub fn gateway(id: &str, owner: &str) -> Gateway {
    let words = ["host", "linux", "arm64", "v22"].map(Box::from);
    let [hostname, platform, arch, runtime] = words;
    Gateway {
        id: GatewayId::stored(id),
        owner: user_id(owner),
        device: Device { hostname, platform, arch, runtime },
        ephemeral: true,
        connected_at: Time(6),
        disconnected_at: Some(Time(7)),
        pending_removals: vec![AgentId::stored("gone")],
    }
}

pub fn put_agent(id: &str, owner: &str) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(agent(id, owner))))
}

/// A text message of a user in a room.
pub fn message(id: &str, room: &str, sender: &str, seq: u64) -> Message {
    Message {
        id: message_id(id),
        seq: Seq(seq),
        at: Time(seq as i64 * 1000),
        destination: Destination::Room(room_id(room)),
        sender: Sender::User(user_id(sender)),
        sender_name: sender.into(),
        kind: MessageKind::Text,
        text: format!("text of {id}").into(),
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
        origin: None,
        answer: None,
    }
}

/// A message with every optional field set and a text that needs escaping.
pub fn full_message(id: &str, destination: Destination, sender: Sender, seq: u64) -> Message {
    Message {
        destination,
        sender,
        kind: MessageKind::AgentResponse,
        text: "a\0b ' \" \\ % _ \u{1f980} é\r\n".into(),
        mentions: vec![
            Mention { member: person("ann"), name: "Ann \"quoted\"".into() },
            Mention { member: agent_member("coder/sub"), name: "".into() },
        ],
        reply_to: Some(message_id("earlier")),
        thread: Some(message_id("first")),
        forwarded: Some(Box::new(forwarded(Sender::Agent(agent_id("coder/sub"))))),
        attachments: vec![
            Attachment { id: UploadId::stored("u1"), file: file("a \"b\" é.md", MediaType::Markdown) },
            Attachment { id: UploadId::stored("u2"), file: file("cat.webp", MediaType::Webp) },
        ],
        client_message_id: Some("mine 1".into()),
        command: Some("say".into()),
        payload: Some(Payload("{\"a\":[1,null]}".into())),
        source: "slack".into(),
        external_id: Some("ts-1".into()),
        edited_at: Some(Time(123)),
        origin: Some(Box::new(Origin {
            connection: "c1".into(),
            client: Some("ann \"x\"".into()),
            id: "c1:0:0".into(),
            fields: Some(Payload("{\"mode\":\"plan\"}".into())),
        })),
        answer: Some(Box::new(Answer {
            owner: user_id("ann"),
            depth: 2,
            chain: vec!["coder".into(), "a \"b\" é".into()],
        })),
        ..message(id, "lobby", "ann", seq)
    }
}

pub fn forwarded(sender: Sender) -> Forwarded {
    let sender_name = "Who \"said\" it".into();
    Forwarded { message: message_id("elsewhere"), sender, sender_name, at: Time(77) }
}

pub fn reaction(emoji: &str, people: &[&str]) -> Reaction {
    let person = |id: &&str| Reactor { user: user_id(id), username: format!("{id} \"x\"").into() };
    Reaction { emoji: emoji.into(), people: people.iter().map(person).collect() }
}

pub fn pin(message: &str, room: &str, by: &str, seq: u64) -> Pin {
    let (room, message) = (room_id(room), message_id(message));
    Pin { room, message, by: user_id(by), seq: Seq(seq), at: Time(seq as i64 * 1000) }
}

pub fn bookmark(message: &str, user: &str, seq: u64) -> Bookmark {
    let (message, user) = (message_id(message), user_id(user));
    Bookmark { message, user, seq: Seq(seq), at: Time(seq as i64 * 1000) }
}

/// A search for `text` in all rooms and from all senders.
pub fn search(text: &str) -> SearchMessages {
    SearchMessages {
        text: text.into(),
        room: None,
        sender: None,
        sender_kind: None,
        kind: None,
        from: None,
        to: None,
        from_place: SearchCursor::default(),
        limit: 1000,
    }
}

pub fn file(name: &str, media: MediaType) -> File {
    File { name: name.into(), media, size: 1 << 40 }
}

pub fn upload(id: &str, owner: &str, content: u8, created: i64, purpose: UploadPurpose) -> Upload {
    Upload {
        id: UploadId::stored(id),
        owner: user_id(owner),
        file: file(&format!("{id} \"é\".csv"), MediaType::Csv),
        digest: BlobDigest([content; 32]),
        created_at: Time(created),
        purpose,
    }
}

pub const ALL_MAIL: MailPage = MailPage { limit: usize::MAX, offset: 0, from: None, to: None };

pub fn on_path(path: &str) -> Destination {
    Destination::Path(Path::parse(path).unwrap())
}

pub fn mailbox(agent: &str, session: Option<&str>) -> Mailbox {
    Mailbox { agent: agent_id(agent), session: session.map(SessionId::stored) }
}

pub fn session(agent: &str, id: &str, created: i64) -> Session {
    Session::new(agent_id(agent), SessionId::stored(id), format!("Title of {id}"), Time(created))
}

pub fn subscription(mailbox: Mailbox, pattern: &str, added: i64) -> Subscription {
    let pattern = Pattern::parse(pattern).unwrap();
    Subscription { agent: mailbox.agent, session: mailbox.session, pattern, added_at: Time(added) }
}

pub fn delivery(message: &str, mailbox: Mailbox) -> Delivery {
    let (message, state) = (message_id(message), DeliveryState::Pending);
    Delivery { message, mailbox, state, attempts: 0, handled_by: Vec::new() }
}

pub fn plan(summary: &str, state: PlanState) -> Plan {
    let step = |title: &str, description: Option<&str>, state| PlanStep {
        title: title.into(),
        description: description.map(Into::into),
        state,
    };
    let steps =
        vec![step("a 'b'", None, StepState::Done), step("", Some("c \0 \"d\""), StepState::InProgress)];
    Plan { summary: summary.into(), state, steps, text: Some("# e\n".into()) }
}

/// Two questions with the options `Tea` and `a "b"`; the second accepts several answers.
pub fn questions() -> Vec<Question> {
    let choice = |label: &str, description: Option<&str>| Choice {
        label: label.into(),
        description: description.map(Into::into),
        preview: None,
    };
    [false, true]
        .map(|several| Question {
            text: "Which \0?".into(),
            header: "Drink".into(),
            options: vec![choice("Tea", None), choice("a \"b\"", Some(""))],
            several,
        })
        .into()
}

pub fn answer(question: usize, selected: &[&str], text: Option<&str>) -> QuestionAnswer {
    let selected = selected.iter().map(|label| (*label).into()).collect();
    QuestionAnswer { question, selected, text: text.map(Into::into) }
}
