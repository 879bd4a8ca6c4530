//! Everything readable from a hub and its store, collected so that two stores can be compared.

use super::agents::{GATEWAYS, PATHS, SESSIONS, mailbox_of};
use super::approvals::REQUESTS;
use super::asks::{SOURCES, idempotency_keys};
use super::people::BACKUP_CODES;
use super::world::World;
use crate::fixtures::{ALL_MAIL, search};
use crate::test_hub::TestHub;
use parlor_engine::Fault;
use parlor_engine::ports::{FirstRequest, Head, IdempotencyKey, OpenApprovalsOf, Snapshot};
use parlor_engine::queries::{AnyAnswer, AnyQuery};
use parlor_model::audit::{Action, AuditFilter, AuditRecord};
use parlor_model::query::{
    CountReplies, EntryPage, FindUser, GetAgent, GetAgentCard, GetAuthContext, GetMe, GetMessage, GetRoom,
    GetRoomInvitation, GetRun, GetRunMessages, GetService, GetSettings, GetUpload, GetWorkspaceRoot,
    ListActiveSessions, ListAgentCards, ListAgents, ListApprovalRules, ListApprovals, ListAuditRecords,
    ListBookmarks, ListChildRuns, ListDeadLetters, ListDestinationHistory, ListGateways, ListHistory,
    ListInvitations, ListKeys, ListMail, ListMailboxes, ListMembers, ListMissions, ListNewMail,
    ListOpenQuestions, ListOwnTasks, ListPins, ListPlans, ListProjectRoots, ListQueue, ListRecent,
    ListReplies, ListRevisions, ListRoomInvitations, ListRooms, ListRoomsWithAgent, ListRouters, ListRuns,
    ListRunsOfAgent, ListRunsOfMessage, ListServices, ListSessions, ListSharedAgentCards, ListSignIns,
    ListSubscriptions, ListTasks, ListUsers, MailCounts, MailPage, MayFollowRoom, MayListenToMailbox,
    MayReadRooms, MayUpload, NeedsSetup, Page, Recent, SearchMessages, SearchUsers,
};
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalRule, BlobDigest, Bookmark, Caller, ConversationEntry,
    CurrentPlan, DeadLetter, Delivery, Destination, Event, Gateway, GatewayId, IdlePrompt, Invitation,
    LoggedEvent, Member, MemberId, Message, MessageId, Mission, MissionScope, Pairing, Path, Pin,
    RefreshToken, Refusal, Revision, Room, RoomId, RoomInvitation, RoomSelection, Router, SecondFactor,
    SecretHash, Seq, Service, Session, SessionId, SignIn, SigningKey, Subscription, Task, Time, TurnDecision,
    TurnDecisionKind, TurnPage, Upload, User, UserId,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::sync::Arc;

const ALL_AUDIT_RECORDS: AuditFilter = AuditFilter {
    limit: usize::MAX - 1,
    before: None,
    action: None,
    actor: None,
    subject: None,
    from: None,
    to: None,
};

type Mail = Vec<(Arc<Message>, Delivery)>;

pub struct Picture {
    pub head: Head,
    pub log: Vec<LoggedEvent>,
    pub setup: Option<(SecretHash, Time)>,
    pub users: (Vec<User>, usize, u64),
    pub people: Vec<UserPicture>,
    pub tokens: Vec<Option<RefreshToken>>,
    pub keys: (Vec<ApiKey>, Vec<Option<ApiKey>>),
    pub signing_keys: Vec<Option<SigningKey>>,
    pub invitations: (Vec<Invitation>, Vec<Option<Invitation>>),
    pub room_invitations: (Vec<Vec<RoomInvitation>>, Vec<Option<RoomInvitation>>),
    pub pairings: Vec<Option<Pairing>>,
    pub routers: Vec<Option<Router>>,
    pub services: (Vec<(Agent, Service)>, Vec<Option<Service>>),
    pub audit: (Vec<AuditRecord>, Option<AuditRecord>),
    pub rooms: Vec<RoomPicture>,
    rooted: Vec<Room>,
    busy: Vec<bool>,
    pub messages: Vec<MessagePicture>,
    pub uploads: Vec<Option<Upload>>,
    /// Released blobs, and for each blob digest of the test whether an upload refers to it.
    pub contents: (Vec<BlobDigest>, Vec<bool>),
    pub agents: Vec<AgentPicture>,
    pub runs: (Vec<parlor_model::Run>, Vec<Option<parlor_model::Run>>),
    conversations: Vec<Vec<ConversationEntry>>,
    pub gateways: (Vec<Gateway>, Vec<Option<Gateway>>),
    pub tasks: Vec<Option<Task>>,
    pub approvals: ApprovalsPicture,
    missions: (Vec<Mission>, Vec<Option<Mission>>, Vec<Option<IdlePrompt>>),
    pub dead_letters: Vec<DeadLetter>,
    turns: TurnsPicture,
    pub together: Vec<bool>,
    pub first_uses: Vec<(IdempotencyKey, Option<FirstRequest>)>,
    pub answers: Vec<(Caller, AnyQuery, Result<AnyAnswer, Refusal>)>,
}

/// Automatic turns: who has them, the decisions about them, and mail that runs hold.
#[derive(Debug, PartialEq, Default)]
struct TurnsPicture {
    agents: Vec<Agent>,
    sessions: Vec<Session>,
    decisions: Vec<TurnDecision>,
    counts: Vec<(TurnDecisionKind, u64)>,
    held: Vec<Delivery>,
}

impl TurnsPicture {
    fn of(agents: &[AgentId], store: &mut dyn Snapshot) -> Result<Self, Fault> {
        let page = TurnPage { limit: usize::MAX, before: None, session: None };
        let mut held = Vec::new();
        for agent in agents {
            for session in SESSIONS {
                held.extend(store.held(&mailbox_of(agent.clone(), session))?);
            }
        }
        Ok(Self {
            agents: store.automatic_agents()?,
            sessions: store.automatic_sessions()?,
            decisions: store.turn_decisions(agents, &page)?,
            counts: store.turn_counts(agents, None)?,
            held,
        })
    }
}

/// Approvals, approval rules and plans.
#[derive(Debug, PartialEq, Default)]
pub struct ApprovalsPicture {
    pub open: Vec<Approval>,
    pub count: usize,
    pub known: Vec<Option<Approval>>,
    lists: Vec<Vec<Approval>>,
    pub rules: Vec<Vec<ApprovalRule>>,
    known_rules: Vec<Option<ApprovalRule>>,
    plans: Vec<Vec<CurrentPlan>>,
}

#[derive(Debug, PartialEq)]
pub struct UserPicture {
    pub found: Option<User>,
    named: Option<User>,
    sign_ins: Vec<SignIn>,
    failed: Option<AuditRecord>,
    pub second_factor: Option<SecondFactor>,
    pub backup_codes: Vec<bool>,
    keys: Vec<ApiKey>,
    signing_key_count: usize,
    memberships: Vec<Member>,
    agents: Vec<Agent>,
    agents_near: Vec<Agent>,
    agents_shared: Vec<Agent>,
    gateways: Vec<Gateway>,
    peers: Vec<UserId>,
    waiting: usize,
    avatars: Vec<Upload>,
    search: Vec<User>,
    pub bookmarks: Vec<(Bookmark, Arc<Message>)>,
    /// The user's bookmark of each known message, visible or not, and their number.
    all_bookmarks: (Vec<Option<Bookmark>>, usize),
}

#[derive(Debug, PartialEq)]
pub struct RoomPicture {
    pub room: Option<Room>,
    pub members: Vec<Member>,
    pub count: usize,
    pub forward: Vec<Arc<Message>>,
    pub backward: Vec<Arc<Message>>,
    since_last_hour: Vec<Arc<Message>>,
    newest: Option<Seq>,
    recent: Vec<Option<Recent>>,
    pub pins: Vec<(Pin, Arc<Message>)>,
    pin_count: usize,
    tasks: (Vec<Task>, usize),
    tail: Vec<LoggedEvent>,
}

/// An agent with its sessions, mailboxes and the agents below it.
#[derive(Debug, PartialEq)]
pub struct AgentPicture {
    pub agent: Option<Agent>,
    pub below: Vec<Agent>,
    pub sessions: Vec<Session>,
    pub mailboxes: Vec<MailboxPicture>,
}

#[derive(Debug, PartialEq)]
pub struct MailboxPicture {
    pub subscriptions: Vec<Subscription>,
    pub pending: Mail,
    pub mail: Mail,
    counts: MailCounts,
    copies: Vec<Option<Delivery>>,
}

#[derive(Debug, PartialEq)]
pub struct MessagePicture {
    pub message: Option<Arc<Message>>,
    pub deliveries: Vec<Delivery>,
    revisions: Vec<Revision>,
    pub pin: Option<Pin>,
    pub answers: Vec<Arc<Message>>,
    pub answer_count: u64,
}

impl Picture {
    pub async fn of(test_hub: &TestHub, world: &World) -> Self {
        let mut picture = test_hub.read(|store| Self::in_store(store, world));
        for caller in &world.callers {
            for query in queries(world) {
                let answer = query.clone().read(test_hub.hub(), caller).await;
                picture.answers.push((caller.clone(), query, answer));
            }
        }
        picture
    }

    fn in_store(store: &mut dyn Snapshot, world: &World) -> Result<Self, Fault> {
        let (users, total) = store.users(usize::MAX, 0)?;
        let head = store.head()?;
        let mut picture = Self {
            head,
            log: store.tail(Seq(0), usize::MAX)?,
            setup: store.setup()?,
            users: (users, total, store.admins()?),
            people: Vec::new(),
            tokens: Vec::new(),
            keys: (store.keys(None)?, Vec::new()),
            signing_keys: Vec::new(),
            invitations: (store.invitations(world.now)?, Vec::new()),
            room_invitations: (Vec::new(), Vec::new()),
            pairings: Vec::new(),
            routers: Vec::new(),
            services: (store.services()?, Vec::new()),
            audit: (store.audit(&ALL_AUDIT_RECORDS)?, store.last_failed_sign_in(None)?),
            rooms: Vec::new(),
            rooted: [store.rooms_with_root()?, store.rooms_about("/srv")?].concat(),
            busy: Vec::new(),
            messages: Vec::new(),
            uploads: Vec::new(),
            contents: (store.released(usize::MAX)?, Vec::new()),
            agents: Vec::new(),
            runs: (store.open_runs()?, Vec::new()),
            conversations: Vec::new(),
            gateways: (store.gateways(None)?, Vec::new()),
            tasks: Vec::new(),
            approvals: approvals_picture(store, world)?,
            missions: (store.missions_on()?, Vec::new(), Vec::new()),
            dead_letters: store.dead_letters(ALL_MAIL)?,
            turns: TurnsPicture::of(&world.agents, store)?,
            together: Vec::new(),
            first_uses: Vec::new(),
            answers: Vec::new(),
        };
        for id in &world.users {
            picture.people.push(user_picture(store, id, world)?);
        }
        for token in &world.tokens {
            picture.tokens.push(store.refresh_token(token)?);
        }
        for secret in &world.secrets {
            picture.keys.1.push(store.key_with(secret)?);
        }
        for id in &world.keys {
            picture.signing_keys.push(store.signing_key(id)?);
        }
        for code in &world.pairings {
            picture.pairings.push(store.pairing(code)?);
        }
        for (room, id, secret) in &world.room_invitations {
            picture.room_invitations.0.push(store.room_invitations(room, world.now)?);
            let found = [store.room_invitation(id)?, store.room_invitation_with(secret)?];
            picture.room_invitations.1.extend(found);
        }
        for (id, secret) in &world.invitations {
            picture.invitations.1.extend([store.invitation(id)?, store.invitation_with(secret)?]);
        }
        for id in &world.routers {
            picture.routers.push(store.router(id)?);
        }
        for id in &world.services {
            picture.services.1.push(store.service(id)?);
        }
        for id in &world.users {
            picture.runs.0.extend(store.open_runs_of_owner(id)?);
            picture.runs.0.extend(store.runs_of_owner(id, 3)?);
        }
        for agent in &world.agents {
            for session in ["main", "side"].map(SessionId::stored) {
                picture.runs.0.extend(store.open_runs_of_session(agent, &session)?);
                for page in [EntryPage::After(0), EntryPage::After(1), EntryPage::Before(None)] {
                    picture.conversations.push(store.conversation(agent, &session, page, 2)?);
                }
            }
        }
        for id in &world.rooms {
            picture.runs.0.extend(store.open_runs_in(id)?);
            picture.rooms.push(room_picture(store, id, world, head.trimmed_through)?);
        }
        for id in &world.messages {
            picture.messages.push(message_picture(store, id)?);
        }
        for id in &world.uploads {
            picture.uploads.push(store.upload(id)?);
        }
        for id in &world.runs {
            picture.runs.1.push(store.run(id)?);
            picture.runs.0.extend(store.runs_below(id)?);
        }
        for content in 0..4 {
            picture.contents.1.push(store.refers_to(&BlobDigest([content; 32]))?);
        }
        for id in &world.agents {
            picture.agents.push(agent_picture(store, id, world.now)?);
            picture.busy.push(store.has_open_run(id)?);
        }
        for id in &world.tasks {
            picture.tasks.push(store.task(id)?);
        }
        for (id, _) in &world.missions {
            picture.missions.1.push(store.mission(id)?);
        }
        for agent in &world.agents {
            for mission_scope in world
                .rooms
                .iter()
                .cloned()
                .map(MissionScope::Room)
                .chain([MissionScope::Global, MissionScope::Root("/srv".into())])
            {
                picture.missions.2.push(store.idle(&mission_scope, agent)?);
            }
        }
        for id in GATEWAYS {
            picture.gateways.1.push(store.gateway(&GatewayId::stored(id))?);
        }
        for first in &world.members() {
            for second in &world.members() {
                picture.together.push(store.share_a_room(first, second)?);
            }
        }
        let owners: Vec<&str> = world.users.iter().map(UserId::as_str).chain(SOURCES).collect();
        for (kind, key) in idempotency_keys() {
            for owner in &owners {
                let key = IdempotencyKey { kind, owner: (*owner).into(), key: key.into() };
                let first = store.first_use(&key)?;
                picture.first_uses.push((key, first));
            }
        }
        Ok(picture)
    }

    pub fn compare(&self, other: &Self, name: &str) -> Result<(), TestCaseError> {
        prop_assert_eq!(&self.head, &other.head, "head of memory and {}", name);
        prop_assert_eq!(&self.log, &other.log, "log of memory and {}", name);
        prop_assert_eq!(&self.setup, &other.setup, "setup link of memory and {}", name);
        prop_assert_eq!(&self.users, &other.users, "users of memory and {}", name);
        prop_assert_eq!(&self.people, &other.people, "user details of memory and {}", name);
        prop_assert_eq!(&self.tokens, &other.tokens, "tokens of memory and {}", name);
        prop_assert_eq!(&self.keys, &other.keys, "keys of memory and {}", name);
        let (own, others) = (&self.signing_keys, &other.signing_keys);
        prop_assert_eq!(own, others, "signing keys of memory and {}", name);
        prop_assert_eq!(&self.pairings, &other.pairings, "pairings of memory and {}", name);
        let (own, others) = (&self.room_invitations, &other.room_invitations);
        prop_assert_eq!(own, others, "invitations to rooms of memory and {}", name);
        prop_assert_eq!(&self.invitations, &other.invitations, "invitations of memory and {}", name);
        prop_assert_eq!(&self.routers, &other.routers, "routers of memory and {}", name);
        prop_assert_eq!(&self.services, &other.services, "service agents of memory and {}", name);
        prop_assert_eq!(&self.audit, &other.audit, "audit logs of memory and {}", name);
        prop_assert_eq!(&self.rooms, &other.rooms, "rooms of memory and {}", name);
        prop_assert_eq!(&self.busy, &other.busy, "busy agents of memory and {}", name);
        prop_assert_eq!(&self.rooted, &other.rooted, "rooms with a project root of memory and {}", name);
        prop_assert_eq!(&self.messages, &other.messages, "messages of memory and {}", name);
        prop_assert_eq!(&self.agents, &other.agents, "agents of memory and {}", name);
        prop_assert_eq!(&self.runs, &other.runs, "runs of memory and {}", name);
        prop_assert_eq!(&self.conversations, &other.conversations, "conversations of memory and {}", name);
        prop_assert_eq!(&self.tasks, &other.tasks, "tasks of memory and {}", name);
        prop_assert_eq!(&self.approvals, &other.approvals, "approvals of memory and {}", name);
        prop_assert_eq!(&self.missions, &other.missions, "missions of memory and {}", name);
        prop_assert_eq!(&self.gateways, &other.gateways, "gateways of memory and {}", name);
        prop_assert_eq!(&self.uploads, &other.uploads, "uploads of memory and {}", name);
        prop_assert_eq!(&self.contents, &other.contents, "blobs of memory and {}", name);
        prop_assert_eq!(&self.turns, &other.turns, "automatic turns of memory and {}", name);
        prop_assert_eq!(&self.dead_letters, &other.dead_letters, "dead letters of memory and {}", name);
        prop_assert_eq!(&self.together, &other.together, "shared rooms of memory and {}", name);
        prop_assert_eq!(&self.first_uses, &other.first_uses, "first uses of memory and {}", name);
        prop_assert_eq!(self.answers.len(), other.answers.len());
        for (own, other) in self.answers.iter().zip(&other.answers) {
            prop_assert_eq!(own, other, "an answer of memory and {}", name);
        }
        Ok(())
    }
}

fn approvals_picture(store: &mut dyn Snapshot, world: &World) -> Result<ApprovalsPicture, Fault> {
    let (open, count) = (store.open_approvals(OpenApprovalsOf::Everybodys)?, store.open_approval_count()?);
    let mut approvals = ApprovalsPicture { open, count, ..ApprovalsPicture::default() };
    for id in &world.approvals {
        approvals.known.push(store.approval(id)?);
    }
    for gateway in GATEWAYS {
        for request in REQUESTS {
            approvals.lists.push(store.approvals_called(&GatewayId::stored(gateway), request)?);
        }
    }
    for run in &world.runs {
        approvals.lists.push(store.open_approvals(OpenApprovalsOf::Run(run))?);
    }
    for agent in &world.agents {
        approvals.lists.push(store.open_approvals(OpenApprovalsOf::Agent(agent))?);
    }
    for user in &world.users {
        approvals.lists.push(store.open_approvals(OpenApprovalsOf::Owner(user))?);
    }
    for room in &world.rooms {
        approvals.lists.push(store.open_approvals(OpenApprovalsOf::Room(room))?);
        approvals.rules.push(store.approval_rules(room)?);
        approvals.plans.push(store.plans(room)?);
    }
    for (room, agent, tool) in &world.rules {
        approvals.known_rules.push(store.approval_rule(room, agent, tool)?);
    }
    Ok(approvals)
}

fn user_picture(store: &mut dyn Snapshot, id: &UserId, world: &World) -> Result<UserPicture, Fault> {
    let marks = world.messages.iter().map(|message| store.bookmark(id, message)).collect::<Result<_, _>>()?;
    let found = store.user(id)?;
    let name = found.as_ref().map(|user| user.username.to_ascii_uppercase()).unwrap_or_default();
    Ok(UserPicture {
        named: store.user_named(&name)?,
        sign_ins: store.sign_ins(id, world.now)?,
        failed: store.last_failed_sign_in(Some(id))?,
        second_factor: store.second_factor(id)?,
        backup_codes: {
            let codes = BACKUP_CODES.map(|byte| store.has_backup_code(id, &SecretHash([byte; 32])));
            codes.into_iter().collect::<Result<_, _>>()?
        },
        keys: store.keys(Some(id))?,
        signing_key_count: store.signing_key_count(id)?,
        memberships: store.memberships(&MemberId::User(id.clone()))?,
        agents: store.agents_of(id)?,
        agents_near: store.agents_near(id)?,
        agents_shared: store.agents_shared(id, 9, 0)?,
        gateways: store.gateways(Some(id))?,
        peers: store.peers(id)?,
        waiting: store.uploads_waiting(id)?,
        avatars: store.avatars(id)?,
        search: store.search_users("n", id, 3)?,
        bookmarks: store.bookmarks(id, None, usize::MAX)?,
        all_bookmarks: (marks, store.bookmark_count(id)?),
        found,
    })
}

fn room_picture(
    store: &mut dyn Snapshot,
    id: &RoomId,
    world: &World,
    trimmed: Seq,
) -> Result<RoomPicture, Fault> {
    let hour_ago = Time(world.now.0 - 60 * 60 * 1_000_000);
    let mut recent = Vec::new();
    let members = store.members(id, usize::MAX, 0)?;
    for member in &members {
        recent.push(store.recent(id, member)?);
    }
    let mut tail = store.room_tail(id, trimmed, usize::MAX)?;
    tail.retain(|logged_event| logged_event.event != Event::Tombstone);
    Ok(RoomPicture {
        room: store.room(id)?,
        count: store.member_count(id)?,
        forward: store.history(id, Seq(0), Page::After(Seq(0)), usize::MAX)?,
        backward: store.history(id, Seq(0), Page::Before(None), usize::MAX)?,
        since_last_hour: store.history(id, Seq(30), Page::AfterTime(hour_ago), usize::MAX)?,
        newest: store.newest_message(id)?,
        pins: store.pins(id, Seq(0))?,
        pin_count: store.pin_count(id)?,
        tasks: (store.tasks(id)?, store.task_count(id)?),
        members,
        recent,
        tail,
    })
}

fn agent_picture(store: &mut dyn Snapshot, id: &AgentId, now: Time) -> Result<AgentPicture, Fault> {
    let mut mailboxes = Vec::new();
    for session in SESSIONS {
        let mailbox = mailbox_of(id.clone(), session);
        let mail = store.mail(&mailbox, ALL_MAIL)?;
        let copies = mail.iter().map(|(message, _)| store.delivery(&mailbox, &message.id));
        mailboxes.push(MailboxPicture {
            copies: copies.collect::<Result<_, _>>()?,
            subscriptions: store.subscriptions_of(&mailbox)?,
            pending: store.pending(&mailbox, now, usize::MAX)?,
            counts: store.mail_counts(&mailbox, now)?,
            mail,
        });
    }
    let (below, sessions) = (store.agents_below(id)?, store.sessions(id)?);
    Ok(AgentPicture { agent: store.agent(id)?, below, sessions, mailboxes })
}

fn message_picture(store: &mut dyn Snapshot, id: &MessageId) -> Result<MessagePicture, Fault> {
    let message = store.message(id)?;
    let (answers, answer_count) = match &message {
        Some(message) => (store.answers(message, Seq(0), usize::MAX)?, store.answer_count(message, Seq(0))?),
        None => (Vec::new(), 0),
    };
    Ok(MessagePicture {
        pin: store.pin(id)?,
        answers,
        answer_count,
        message,
        deliveries: store.deliveries(id)?,
        revisions: store.revisions(id, usize::MAX)?,
    })
}

fn queries(world: &World) -> Vec<AnyQuery> {
    let mut queries: Vec<AnyQuery> = Vec::new();
    queries.push(ListBookmarks { before: None, limit: 2 }.into());
    queries.extend([ListSignIns.into(), ListKeys.into(), ListAgents.into(), ListGateways.into()]);
    queries.extend([ListAgentCards.into(), ListSharedAgentCards { limit: 2, offset: 1 }.into()]);
    queries.push(ListSessions { agent_prefix: "".into(), limit: 3 }.into());
    queries.push(ListActiveSessions { agent: None }.into());
    for id in &world.agents {
        queries.extend([GetAgent { id: id.clone() }.into(), GetAgentCard { id: id.clone() }.into()]);
    }
    queries.extend([ListRooms.into(), ListProjectRoots.into(), MayReadRooms { rooms: at_root() }.into()]);
    for room in &world.rooms {
        queries.extend([
            AnyQuery::from(GetRoom { room: room.clone() }),
            ListMembers { room: room.clone(), limit: 2, offset: 1 }.into(),
            GetWorkspaceRoot { rooms: room.clone().into() }.into(),
            MayFollowRoom { room: room.clone() }.into(),
            ListRoomInvitations { room: room.clone() }.into(),
        ]);
    }
    let invitations = world.room_invitations.iter().take(3);
    queries.extend(invitations.map(|(_, _, token)| AnyQuery::from(GetRoomInvitation { token: *token })));
    let agents = world.agents.iter().cloned();
    queries.extend(agents.map(|agent| AnyQuery::from(ListRoomsWithAgent { agent })));
    queries.extend([GetSettings.into(), ListInvitations.into(), GetMe.into(), NeedsSetup.into()]);
    queries.push(GetAuthContext.into());
    queries.push(ListUsers { limit: 3, offset: 1 }.into());
    queries.push(SearchUsers { text: "a".into() }.into());
    queries.push(FindUser { username: "bob".into() }.into());
    let every = |limit| AuditFilter { limit, ..AuditFilter::default() };
    let filters = [
        AuditFilter { before: Some(9), ..every(5) },
        AuditFilter { action: Some(Action::SignInFailed), ..every(3) },
        AuditFilter { actor: Some("root".into()), ..every(3) },
        AuditFilter { subject: Some("ann".into()), ..every(3) },
        AuditFilter { from: Some(Time(world.now.0 - 1_000_000)), ..every(3) },
    ];
    queries.extend(filters.map(|filter| AnyQuery::from(ListAuditRecords { filter })));
    queries.push(ListOwnTasks { limit: 3, offset: 1 }.into());
    queries.extend([ListOpenQuestions.into(), ListQueue { room: None }.into()]);
    queries.push(ListPlans { rooms: at_root() }.into());
    for room in &world.rooms {
        queries.extend([
            AnyQuery::from(ListPins { room: room.clone() }),
            ListTasks { room: room.clone() }.into(),
            ListApprovals { room: room.clone() }.into(),
            ListApprovalRules { room: room.clone() }.into(),
            ListPlans { rooms: room.clone().into() }.into(),
        ]);
    }
    queries.extend(mail_queries(world));
    queries.push(MayUpload.into());
    queries.extend(world.uploads.iter().take(8).map(|id| AnyQuery::from(GetUpload { id: id.clone() })));
    queries.extend([ListRouters.into(), ListServices.into()]);
    let services = world.services.iter().take(3);
    queries.extend(services.map(|agent| AnyQuery::from(GetService { agent: agent.clone() })));
    let missions = |room: &RoomId| AnyQuery::from(ListMissions { rooms: room.clone().into(), limit: 3 });
    queries.extend(world.rooms.iter().map(missions));
    queries.extend(message_queries(world));
    queries
}

/// Selects all rooms of the caller with the only allowed project root.
fn at_root() -> RoomSelection {
    RoomSelection { room: None, root: Some("/srv".into()) }
}

fn mail_queries(world: &World) -> Vec<AnyQuery> {
    let hour_ago = Time(world.now.0 - 60 * 60 * 1_000_000);
    let pages = [
        MailPage { limit: 3, offset: 1, from: None, to: None },
        MailPage { limit: 1000, offset: 0, from: Some(hour_ago), to: Some(world.now) },
    ];
    let mut queries: Vec<AnyQuery> = pages.map(|page| ListDeadLetters { page }.into()).into();
    for id in &world.agents {
        queries.push(MayListenToMailbox { mailbox: parlor_model::Mailbox::of(id.clone()) }.into());
        queries.push(ListMailboxes { agent: id.clone() }.into());
        for (session, page) in [None, Some("main")].into_iter().zip(pages) {
            let mailbox = mailbox_of(id.clone(), session);
            queries.push(ListSubscriptions { mailbox: mailbox.clone() }.into());
            let also = world.messages.iter().take(2).cloned().collect();
            let newer = ListNewMail { mailbox: mailbox.clone(), after: Seq(40), limit: 3, also };
            queries.push(newer.into());
            queries.push(ListMail { mailbox, page }.into());
        }
    }
    queries
}

fn message_queries(world: &World) -> Vec<AnyQuery> {
    let mut queries = vec![ListRecent.into(), search("hello -again").into(), search("ann* bob").into()];
    for room in world.rooms.iter().take(2) {
        queries.push(SearchMessages { room: Some(room.clone()), ..search("hello") }.into());
    }
    for room in &world.rooms {
        for page in [Page::Before(None), Page::After(Seq(20))] {
            queries.push(ListHistory { room: room.clone(), page, limit: 2 }.into());
        }
    }
    let rooms = world.rooms.iter().cloned().map(Destination::Room);
    let paths = PATHS.iter().map(|path| Destination::Path(Path::stored(*path)));
    for destination in rooms.chain(paths) {
        let hour_ago = Some(Time(world.now.0 - 60 * 60 * 1_000_000));
        let range = |forwards, start, until| {
            let destination = destination.clone();
            let (end, cursor) = (Some(world.now), None);
            ListDestinationHistory { destination, forwards, start, end, until, cursor, limit: 3 }
        };
        queries.push(range(true, hour_ago, None).into());
        queries.push(range(false, None, Some(Seq(40))).into());
        queries.push(ListDestinationHistory { cursor: Some(Seq(20)), ..range(true, None, None) }.into());
    }
    for message in world.messages.iter().take(5) {
        queries.extend([
            AnyQuery::from(ListRevisions { message: message.clone() }),
            ListReplies { message: message.clone(), after: Seq(20), limit: 2 }.into(),
            CountReplies { message: message.clone() }.into(),
            GetMessage { message: message.clone() }.into(),
        ]);
    }
    let runs_of_room = |room: &RoomId| ListRuns { rooms: room.clone().into(), limit: 3 }.into();
    queries.push(ListRuns { rooms: at_root(), limit: 3 }.into());
    queries.extend(world.rooms.iter().map(runs_of_room));
    let runs_of_message = |message: &MessageId| ListRunsOfMessage { message: message.clone() }.into();
    queries.extend(world.messages.iter().take(5).map(runs_of_message));
    let runs_of_agent = |agent: &AgentId| ListRunsOfAgent { agent: agent.clone(), limit: 3 }.into();
    queries.extend(world.agents.iter().map(runs_of_agent));
    for run in world.runs.iter().take(3) {
        queries.push(GetRun { run: run.clone() }.into());
        queries.push(ListChildRuns { run: run.clone() }.into());
        queries.push(GetRunMessages { run: run.clone() }.into());
    }
    queries
}
