//! All tables of the in-memory store, and the reads that several ports share.

use super::log::Row;
use super::table::{Table, sorted};
use parlor_engine::ports::{FirstRequest, Head, IdempotencyKey};
use parlor_model::audit::AuditRecord;
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, BlobDigest, Bookmark, ConversationEntry,
    CurrentPlan, DeadLetter, Delivery, Destination, Epoch, Gateway, GatewayId, HubSettings, IdlePrompt,
    Invitation, InvitationId, KeyId, Mailbox, Member, MemberId, Message, MessageId, Mission, MissionId,
    MissionScope, Pairing, Pattern, Pin, RefreshToken, Revision, Room, RoomId, RoomInvitation, Router,
    RouterId, Run, RunId, SealedKey, SecondFactor, SecretHash, Seq, Service, Session, SessionId, SignIn,
    SignInId, Subscription, Task, TaskId, Time, TurnDecision, Upload, UploadId, User, UserId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The message, and the mailbox where it was never acknowledged (`None` if it reached no mailbox).
type DeadLetterKey = (MessageId, Option<Mailbox>);

#[derive(Clone)]
pub struct Tables {
    pub head: Head,
    pub log: BTreeMap<Seq, Row>,
    pub setup: Option<(SecretHash, Time)>,
    pub last_maintenance: Option<Time>,
    /// Time of the last maintenance that detected a clock jump or an outage of more than a day.
    pub clock_jumped_at: Option<Time>,
    pub users: Table<UserId, User>,
    pub sign_ins: Table<SignInId, SignIn>,
    pub refresh_tokens: BTreeMap<SecretHash, RefreshToken>,
    pub keys: Table<KeyId, ApiKey>,
    pub key_secrets: BTreeMap<SecretHash, KeyId>,
    /// Encrypted secrets of the keys that sign tokens.
    pub sealed_keys: BTreeMap<KeyId, SealedKey>,
    pub revocations: BTreeMap<(KeyId, Box<str>), Time>,
    pub invitations: Table<InvitationId, (Invitation, SecretHash)>,
    pub room_invitations: Table<InvitationId, (RoomInvitation, SecretHash)>,
    pub pairings: BTreeMap<UserId, (Pairing, SecretHash)>,
    pub routers: BTreeMap<RouterId, Router>,
    pub services: BTreeMap<AgentId, Service>,
    pub audit: BTreeMap<u64, AuditRecord>,
    /// Id of the newest audit record; ids are never reused.
    pub last_audit_id: u64,
    /// Decisions about automatic turns, oldest first.
    pub turns: Vec<TurnDecision>,
    /// Number of the newest decision; numbers are never reused.
    pub last_turn: u64,
    pub settings: HubSettings,
    pub second_factors: BTreeMap<UserId, SecondFactor>,
    pub backup_codes: BTreeSet<(UserId, SecretHash)>,
    pub rooms: Table<RoomId, Room>,
    /// Stored with empty handles; `named` fills in the current ones.
    pub members: Table<(RoomId, MemberId), Member>,
    pub messages: Table<MessageId, Arc<Message>>,
    /// Destination and `Seq` of deleted messages, so that their ids are not reused.
    pub erased: BTreeMap<MessageId, (Destination, Seq)>,
    pub revisions: BTreeMap<MessageId, Vec<Revision>>,
    pub pins: Table<MessageId, Pin>,
    pub bookmarks: Table<(UserId, MessageId), Bookmark>,
    pub uploads: Table<UploadId, Upload>,
    pub released: BTreeSet<BlobDigest>,
    pub agents: Table<AgentId, Agent>,
    pub gateways: BTreeMap<GatewayId, Gateway>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub sessions: Table<(AgentId, SessionId), Session>,
    pub subscriptions: Table<(AgentId, Option<SessionId>, Pattern), Subscription>,
    pub deliveries: Table<(MessageId, Mailbox), Delivery>,
    /// The undelivered message, the mailbox it was in (if any), and the reason.
    pub dead_letters: Table<DeadLetterKey, (MessageId, Option<Mailbox>, Box<str>)>,
    pub runs: Table<RunId, Run>,
    pub conversation_entries: BTreeMap<(AgentId, SessionId, u64), ConversationEntry>,
    pub approvals: Table<ApprovalId, Approval>,
    pub approval_rules: BTreeMap<(RoomId, AgentId, Box<str>), ApprovalRule>,
    pub plans: BTreeMap<(RoomId, AgentId), CurrentPlan>,
    pub missions: BTreeMap<MissionId, Mission>,
    pub idle: BTreeMap<(MissionScope, AgentId), IdlePrompt>,
    pub first_uses: BTreeMap<IdempotencyKey, (FirstRequest, Time)>,
}

impl Tables {
    pub fn remove_room_invitations(&mut self, is_removed: impl Fn(&RoomInvitation) -> bool) {
        let all = self.room_invitations.rows().map(|(invitation, _)| invitation);
        let removed: Vec<InvitationId> = all.filter(|i| is_removed(i)).map(|i| i.id.clone()).collect();
        for invitation in removed {
            self.room_invitations.remove(&invitation);
        }
    }

    pub fn empty(epoch: Epoch) -> Self {
        Self {
            head: Head { epoch, seq: Seq(0), at: Time(0), trimmed_through: Seq(0) },
            log: BTreeMap::new(),
            setup: None,
            last_maintenance: None,
            clock_jumped_at: None,
            users: Table::default(),
            sign_ins: Table::default(),
            refresh_tokens: BTreeMap::new(),
            keys: Table::default(),
            key_secrets: BTreeMap::new(),
            sealed_keys: BTreeMap::new(),
            revocations: BTreeMap::new(),
            invitations: Table::default(),
            room_invitations: Table::default(),
            pairings: BTreeMap::new(),
            routers: BTreeMap::new(),
            services: BTreeMap::new(),
            audit: BTreeMap::new(),
            last_audit_id: 0,
            turns: Vec::new(),
            last_turn: 0,
            settings: HubSettings::default(),
            second_factors: BTreeMap::new(),
            backup_codes: BTreeSet::new(),
            rooms: Table::default(),
            members: Table::default(),
            messages: Table::default(),
            erased: BTreeMap::new(),
            revisions: BTreeMap::new(),
            pins: Table::default(),
            bookmarks: Table::default(),
            uploads: Table::default(),
            released: BTreeSet::new(),
            agents: Table::default(),
            gateways: BTreeMap::new(),
            tasks: BTreeMap::new(),
            sessions: Table::default(),
            subscriptions: Table::default(),
            deliveries: Table::default(),
            dead_letters: Table::default(),
            runs: Table::default(),
            conversation_entries: BTreeMap::new(),
            approvals: Table::default(),
            approval_rules: BTreeMap::new(),
            plans: BTreeMap::new(),
            missions: BTreeMap::new(),
            idle: BTreeMap::new(),
            first_uses: BTreeMap::new(),
        }
    }

    /// Returns the membership with the current handle of its user or agent.
    pub fn named(&self, member: &Member) -> Member {
        let handle = match &member.member {
            MemberId::User(id) => self.users.get(id).map(|user| user.username.clone()),
            MemberId::Agent(id) => self.agents.get(id).map(|_| id.as_str().into()),
        };
        Member { handle: handle.unwrap_or_default(), ..member.clone() }
    }

    /// Members of a room, in the order in which they joined.
    pub fn members_of(&self, room: &RoomId) -> impl Iterator<Item = Member> {
        self.members.rows().filter(move |member| member.room == *room).map(|member| self.named(member))
    }

    /// Messages of a room, oldest first.
    pub fn messages_in(&self, room: &RoomId) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.rows().filter(move |message| message.destination.room() == Some(room))
    }

    /// Messages of a room or path, oldest first.
    pub fn messages_at(&self, destination: &Destination) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.rows().filter(move |message| message.destination == *destination)
    }

    /// Replies to a message: its whole thread if it started one, otherwise the direct replies only.
    pub fn answers_to(&self, to: &Message) -> impl Iterator<Item = &Arc<Message>> {
        let (id, starts_thread) = (to.id.clone(), to.thread.is_none());
        self.messages.rows().filter(move |message| {
            let to = if starts_thread { &message.thread } else { &message.reply_to };
            to.as_ref() == Some(&id)
        })
    }

    pub fn deliveries_of(&self, message: &MessageId) -> impl Iterator<Item = &Delivery> {
        let copies = self.deliveries.rows().filter(move |delivery| delivery.message == *message);
        // Imported copies are added in any order.
        let order = |delivery: &&Delivery| (delivery.mailbox.session.is_none(), delivery.mailbox.clone());
        sorted(copies, order).into_iter()
    }

    /// All deliveries of a mailbox with their messages, in every delivery state, oldest first.
    pub fn mail_of(&self, mailbox: &Mailbox) -> impl DoubleEndedIterator<Item = (Arc<Message>, Delivery)> {
        let copies = self.deliveries.rows().filter(move |delivery| delivery.mailbox == *mailbox);
        let mail = copies.filter_map(|copy| Some((self.messages.get(&copy.message)?.clone(), copy.clone())));
        // Resent, imported and moved copies may be older than those before them.
        sorted(mail, |(message, _)| message.seq).into_iter()
    }

    pub fn all_dead_letters(&self) -> impl Iterator<Item = DeadLetter> {
        self.dead_letters.rows().filter_map(|(id, mailbox, reason)| {
            let message = self.messages.get(id)?.clone();
            Some(DeadLetter { message, reason: reason.clone(), mailbox: mailbox.clone() })
        })
    }

    pub fn in_room(&self, room: &RoomId, member: &MemberId) -> bool {
        self.members.get(&(room.clone(), member.clone())).is_some()
    }
}
