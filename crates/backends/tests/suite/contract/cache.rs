//! The writer's cache: after every kind of change its entries equal the store.
//!
//! The examples name what the cache holds, so a change that should remove an entry finds it there. Random
//! commands alone do not reach every case.

use super::approvals::{approval, rule};
use super::automatic::decision;
use super::conversations::entry;
use super::routers::router;
use super::second_factor::factor;
use super::services::service;
use super::tasks::task;
use super::turns::ended;
use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::Limits;
use parlor_engine::cache::Cache;
use parlor_engine::changes::{
    AccountChange, AgentChange, AnnotationChange, ApprovalChange, AuditChange, Change, ConversationChange,
    CredentialChange, MailChange, MessageChange, MissionChange, ModelChange, RoomChange, RunChange,
    SettingsChange, Settlement, TaskChange, TurnChange, UploadChange,
};
use parlor_engine::effects::Effects;
use parlor_engine::ports::{FirstRequest, IdempotencyKey, IdempotencyKind, Lookup};
use parlor_engine::read_view::ReadView;
use parlor_model::TurnDecisionKind::Held;
use parlor_model::audit::{Action, Actor, NewAuditEntry};
use parlor_model::run_event::PlanState;
use parlor_model::{
    BlobDigest, Caller, CurrentPlan, Epoch, GatewayId, IdlePrompt, InvitationId, KeyId, Mailbox, Mission,
    MissionId, MissionScope, Pairing, Pattern, Position, Revision, Revocation, RouterId, RunId, RunOutcome,
    SealedKey, SecretHash, Seq, SessionId, SessionRef, SignInId, TaskId, Time, UploadId, UploadPurpose, User,
};
use std::collections::BTreeSet;
use std::sync::Arc;

const SECRET: SecretHash = SecretHash([7; 32]);

/// Ann and Bob in the room `lobby`, with Bob's agent `coder`; Ann in the room `den`, with the agent `writer`.
fn prepare(ports: &mut Ports) {
    ports.change(vec![
        put_user("ann", 1),
        put_user("bob", 2),
        Change::Credential(CredentialChange::PutSignIn(Arc::new(sign_in("phone", "ann", 1000)), SECRET)),
        Change::Credential(CredentialChange::PutSignIn(
            Arc::new(sign_in("laptop", "bob", 1000)),
            SecretHash([8; 32]),
        )),
        Change::Credential(CredentialChange::PutKey(Arc::new(key("key", "bob", 3)), SecretHash([9; 32]))),
        Change::Model(ModelChange::PutRouter(Arc::new(router("picker", "ann", true, 1)))),
        put_room("lobby"),
        put_room("den"),
        Change::Agent(AgentChange::PutGateway(Arc::new(gateway("laptop", "bob")))),
        put_agent("coder", "bob"),
        put_agent("writer", "ann"),
        put_member("lobby", person("ann"), 1),
        put_member("lobby", person("bob"), 2),
        put_member("lobby", agent_member("coder"), 3),
        put_member("den", person("ann"), 4),
        put_member("den", agent_member("writer"), 5),
    ]);
    ports.post(message("m", "lobby", "ann", 1));
}

/// Reads everything that the cache can hold.
fn fill(cache: &mut Cache, store: &mut dyn Lookup) {
    let (limits, head) = (Limits::default(), Position { epoch: Epoch(1), seq: Seq(1) });
    let mut view = ReadView::new(Time(10), head, &limits, store, cache);
    let callers = [
        Caller::person(user_id("ann"), SignInId::stored("phone")),
        Caller::person(user_id("bob"), SignInId::stored("laptop")),
        Caller::program(user_id("bob"), KeyId::stored("key")),
    ];
    for caller in callers {
        view.caller_context(&caller).unwrap();
    }
    for room in ["lobby", "den"].map(room_id) {
        if let Some(room) = view.room(&room).unwrap() {
            view.agents_in(&room).unwrap();
            view.mentionable(&room).unwrap();
        }
        for user in ["ann", "bob"].map(user_id) {
            view.member(&room, &user).unwrap();
        }
    }
    for agent in ["coder", "writer"].map(agent_id) {
        view.agent(&agent).unwrap();
    }
}

/// At least one change of each kind, applied to the store that `prepare` has filled.
fn changes() -> Vec<Change> {
    let upload = |purpose| Arc::new(upload("u", "ann", 1, 5, purpose));
    let coder = || mailbox("coder", None);
    let renamed = User { display_name: "Another name".into(), ..user("ann", 1) };
    let promoted = User { role: parlor_model::SiteRole::Admin, ..user("bob", 2) };
    let edited = Arc::new(message("m", "lobby", "ann", 1));
    let previous = Revision { message: message_id("m"), text: "before".into(), edited_at: Time(5) };
    let mut renamed_agent = agent("coder", "bob");
    renamed_agent.name = "Another agent".into();
    let mut frozen = room("lobby");
    frozen.frozen = None;
    let mut admin = member("lobby", person("bob"), 2);
    admin.role = parlor_model::RoomRole::Admin;
    let mut refreshed = sign_in("phone", "ann", 2000);
    refreshed.generation = 4;
    vec![
        Change::Account(AccountChange::OfferSetup(Some((SECRET, Time(9))))),
        Change::Account(AccountChange::PutUser(Arc::new(renamed))),
        Change::Account(AccountChange::PutUser(Arc::new(promoted))),
        Change::Account(AccountChange::RemoveUser(user_id("bob"))),
        Change::Credential(CredentialChange::PutSignIn(Arc::new(refreshed), SecretHash([10; 32]))),
        Change::Credential(CredentialChange::EndSignIn(SignInId::stored("phone"))),
        Change::Credential(CredentialChange::EndSignInsOf(user_id("ann"))),
        Change::Credential(CredentialChange::PutKey(Arc::new(key("key 2", "bob", 4)), SecretHash([11; 32]))),
        Change::Credential(CredentialChange::PutSigningKey(
            Arc::new(signing_key("key 3", "bob", 5)),
            SecretHash([12; 32]),
            SealedKey([1].into()),
        )),
        Change::Credential(CredentialChange::RevokeTokens {
            key: KeyId::stored("key 3"),
            revocations: vec![Revocation { target: "client:a".into(), issued_before: Time(5) }],
            expired_before: Time(1),
        }),
        Change::Credential(CredentialChange::RemoveKey(KeyId::stored("key"))),
        Change::Account(AccountChange::PutInvitation(Arc::new(invitation("i", 1, 99)), SECRET)),
        Change::Account(AccountChange::UseInvitation(InvitationId::stored("i"))),
        Change::Account(AccountChange::PutRoomInvitation(
            Arc::new(room_invitation("j", "lobby", 1, 99)),
            SECRET,
        )),
        Change::Account(AccountChange::RemoveRoomInvitation(InvitationId::stored("j"))),
        Change::Account(AccountChange::PutPairing(
            Pairing { user: user_id("ann"), expires_at: Time(9) },
            SECRET,
        )),
        Change::Account(AccountChange::RemovePairing(user_id("ann"))),
        Change::Account(AccountChange::RemoveInvitation(InvitationId::stored("i"))),
        Change::Model(ModelChange::PutRouter(Arc::new(router("picker", "bob", false, 1)))),
        Change::Model(ModelChange::RemoveRouter(RouterId::stored("picker"))),
        Change::Model(ModelChange::PutService(Arc::new(service("coder")))),
        Change::Audit(AuditChange::AppendAudit(Arc::new(NewAuditEntry {
            at: Time(5),
            actor: Actor::Operator,
            action: Action::BackedUp,
            subject: None,
            detail: None,
            address: None,
        }))),
        Change::Audit(AuditChange::RepeatAudit { id: 1, at: Time(6), address: None }),
        Change::Settings(SettingsChange::PutSettings(Default::default())),
        Change::Credential(CredentialChange::PutSecondFactor(Arc::new(factor("ann")))),
        Change::Credential(CredentialChange::PutBackupCodes(user_id("ann"), vec![SECRET])),
        Change::Credential(CredentialChange::SpendBackupCode(user_id("ann"), SECRET)),
        Change::Credential(CredentialChange::RemoveSecondFactor(user_id("ann"))),
        Change::Room(RoomChange::PutRoom(Arc::new(frozen))),
        Change::Room(RoomChange::RemoveRoom(room_id("lobby"))),
        Change::Room(RoomChange::PutMember(Arc::new(admin))),
        Change::Room(RoomChange::PutMember(Arc::new(member("den", person("bob"), 6)))),
        Change::Room(RoomChange::PutMember(Arc::new(member("den", agent_member("coder"), 6)))),
        Change::Room(RoomChange::RenameMember {
            room: room_id("lobby"),
            member: person("ann"),
            name: "Ann-2".into(),
        }),
        Change::Room(RoomChange::RemoveMember(room_id("lobby"), person("ann"))),
        Change::Room(RoomChange::RemoveMember(room_id("lobby"), agent_member("coder"))),
        Change::Message(MessageChange::PutMessage(Arc::new(message("m2", "lobby", "ann", 2)))),
        Change::Message(MessageChange::Revise { message: edited, previous }),
        Change::Message(MessageChange::DeleteMessage(message_id("m"))),
        Change::Annotation(AnnotationChange::PutReactions {
            message: message_id("m"),
            reactions: Arc::new([reaction("+1", &["ann"])]),
        }),
        Change::Annotation(AnnotationChange::PutPin(pin("m", "lobby", "ann", 2))),
        Change::Annotation(AnnotationChange::RemovePin(message_id("m"))),
        Change::Annotation(AnnotationChange::PutBookmark(bookmark("m", "ann", 2))),
        Change::Annotation(AnnotationChange::RemoveBookmark(user_id("ann"), message_id("m"))),
        Change::Room(RoomChange::MarkRead {
            room: room_id("lobby"),
            user: user_id("ann"),
            through: Seq(1),
            at: Time(9),
        }),
        Change::Upload(UploadChange::PutUpload(upload(UploadPurpose::Unattached))),
        Change::Upload(UploadChange::Attach { upload: UploadId::stored("u"), message: message_id("m") }),
        Change::Upload(UploadChange::RemoveUpload(UploadId::stored("u"))),
        Change::Upload(UploadChange::ForgetReleased(vec![BlobDigest([1; 32])])),
        Change::Agent(AgentChange::PutAgent(Arc::new(renamed_agent))),
        Change::Agent(AgentChange::RemoveAgent(agent_id("coder"))),
        Change::Agent(AgentChange::ReplaceAgent { old: agent_id("coder"), new: agent_id("new") }),
        Change::Agent(AgentChange::PutGateway(Arc::new(gateway("laptop", "ann")))),
        Change::Agent(AgentChange::RemoveGateway(GatewayId::stored("laptop"))),
        Change::Task(TaskChange::PutTask(Arc::new(task("t", "lobby", person("ann"), 1)))),
        Change::Task(TaskChange::RemoveTask(TaskId::stored("t"))),
        Change::Turn(TurnChange::AppendDecision(Arc::new(decision("coder", "main", Held, Time(1))))),
        Change::Mail(MailChange::PutSession(session("coder", "main", 1))),
        Change::Mail(MailChange::PutSubscription(subscription(coder(), "slack/**", 1))),
        Change::Mail(MailChange::RemoveSubscription(coder(), Pattern::parse("slack/**").unwrap())),
        Change::Mail(MailChange::PutDelivery { delivery: delivery("m", coder()), seq: Seq(1) }),
        Change::Mail(MailChange::MarkDelivered { mailbox: coder(), messages: vec![message_id("m")] }),
        Change::Mail(MailChange::Lease {
            mailbox: coder(),
            messages: vec![message_id("m")],
            until: Time(99),
        }),
        Change::Mail(MailChange::SettleHeld {
            session: SessionRef { agent: agent_id("coder"), session: SessionId::main() },
            messages: vec![message_id("m")],
            settlement: Settlement::Delivered,
        }),
        Change::Mail(MailChange::DeadLetterDelivery {
            mailbox: coder(),
            message: Arc::new(message("m", "lobby", "ann", 1)),
            reason: "too_many_attempts".into(),
        }),
        Change::Mail(MailChange::MoveMail { from: coder(), to: Mailbox::of(agent_id("other")) }),
        Change::Run(RunChange::PutRun(Arc::new(ended("r", "coder", "c", 5, RunOutcome::Complete)))),
        Change::Approval(ApprovalChange::PutApproval(Arc::new(approval("a", "lobby", "coder")))),
        Change::Approval(ApprovalChange::PutApprovalRule(rule("lobby", "coder", "Bash", "ann"))),
        Change::Conversation(ConversationChange::AppendEntry(Arc::new(entry("coder", "main", "hi")))),
        Change::Run(RunChange::PutPlan(Arc::new(CurrentPlan {
            room: room_id("lobby"),
            agent: agent_id("coder"),
            run: RunId::stored("r"),
            plan: plan("Tea", PlanState::Planned),
            text: None,
            rev: 1,
            at: Time(5),
        }))),
        Change::Mission(MissionChange::PutMission(Arc::new(Mission {
            id: MissionId::stored("mission"),
            mission_scope: MissionScope::Room(room_id("lobby")),
            room: room_id("lobby"),
            text: "Tea".into(),
            agents: Vec::new(),
            created_by: user_id("ann"),
            created_at: Time(5),
            ended_at: None,
            prompts: 0,
        }))),
        Change::Mission(MissionChange::PutIdlePrompt {
            mission_scope: MissionScope::Global,
            agent: agent_id("coder"),
            idle: Some(IdlePrompt { prompt: None, interval: Some(60) }),
        }),
        Change::Approval(ApprovalChange::RemoveApprovalRule(rule("lobby", "coder", "Bash", "ann"))),
        Change::Mail(MailChange::ClearDeadLetters),
        Change::Mail(MailChange::ReviveDelivery {
            mailbox: mailbox("coder", None),
            message: message_id("m"),
        }),
        Change::Mail(MailChange::RemoveDeadLetter {
            message: Arc::new(message("m", "lobby", "ann", 1)),
            mailbox: None,
        }),
        Change::Mail(MailChange::DeadLetter {
            message: Arc::new(message("m", "lobby", "ann", 1)),
            reason: "no_subscribers",
        }),
        Change::Message(MessageChange::RememberIdempotencyKey {
            key: IdempotencyKey {
                kind: IdempotencyKind::ClientMessage,
                owner: "ann".into(),
                key: "k".into(),
            },
            first: FirstRequest { digest: [0; 16], message: message_id("m"), seq: Seq(1) },
            at: Time(5),
        }),
    ]
}

/// Kinds of change that concern an entry of the cache.
const CONCERNING: [&str; 16] = [
    "EndSignIn",
    "EndSignInsOf",
    "MarkRead",
    "PutAgent",
    "PutMember",
    "PutRoom",
    "PutSignIn",
    "PutUser",
    "RemoveAgent",
    "RemoveKey",
    "RemoveMember",
    "RemoveRoom",
    "RemoveRouter",
    "RemoveUser",
    "RenameMember",
    "ReplaceAgent",
];

#[test]
fn no_change_leaves_a_stale_entry_in_the_cache() {
    let kinds: BTreeSet<&str> = changes().iter().map(kind).collect();
    assert_eq!(kinds.len(), KINDS, "an example of each kind of change");
    each(|ports| {
        prepare(ports);
        let mut concerning = BTreeSet::new();
        for change in changes() {
            let mut transaction = ports.store.begin().unwrap();
            let (mut cache, mut unchanged) = (Cache::new(100), Cache::new(100));
            fill(&mut cache, transaction.lookup());
            fill(&mut unchanged, transaction.lookup());
            assert_eq!(cache.verify(transaction.lookup()).unwrap(), None, "before {change:?}");
            let effects = Effects { changes: vec![change.clone()], ..Effects::default() };
            transaction.apply(&effects).unwrap();
            cache.apply(&change);
            assert_eq!(cache.verify(transaction.lookup()).unwrap(), None, "after {change:?}");
            // Shows that the example concerns an entry, and that verification finds a stale one.
            if unchanged.verify(transaction.lookup()).unwrap().is_some() {
                concerning.insert(kind(&change));
            }
        }
        assert_eq!(concerning.into_iter().collect::<Vec<_>>(), CONCERNING);
    });
}

#[test]
fn a_full_cache_is_cleared_and_stays_correct() {
    each(|ports| {
        prepare(ports);
        let mut transaction = ports.store.begin().unwrap();
        for capacity in 0..8 {
            let mut cache = Cache::new(capacity);
            for _ in 0..3 {
                fill(&mut cache, transaction.lookup());
                assert_eq!(cache.verify(transaction.lookup()).unwrap(), None, "capacity {capacity}");
            }
        }
    });
}

#[test]
fn a_cached_sign_in_expires() {
    each(|ports| {
        prepare(ports);
        let mut transaction = ports.store.begin().unwrap();
        let (limits, mut cache) = (Limits::default(), Cache::new(100));
        let mut is_signed_in = |now| {
            let head = Position { epoch: Epoch(1), seq: Seq(1) };
            let mut view = ReadView::new(now, head, &limits, transaction.lookup(), &mut cache);
            let caller = Caller::person(user_id("ann"), SignInId::stored("phone"));
            view.caller_context(&caller).unwrap().auth.is_some()
        };
        assert!(is_signed_in(Time(999)));
        assert!(!is_signed_in(Time(1000)));
        assert!(is_signed_in(Time(999)));
    });
}

/// Number of kinds of change: the arms of `kind`.
const KINDS: usize = 75;

/// Name of a kind of change. A new kind does not compile until it is listed here, with an example in `changes`.
fn kind(change: &Change) -> &'static str {
    match change {
        Change::Account(AccountChange::OfferSetup(..)) => "OfferSetup",
        Change::Account(AccountChange::PutUser(..)) => "PutUser",
        Change::Account(AccountChange::RemoveUser(..)) => "RemoveUser",
        Change::Credential(CredentialChange::PutSignIn(..)) => "PutSignIn",
        Change::Credential(CredentialChange::EndSignIn(..)) => "EndSignIn",
        Change::Credential(CredentialChange::EndSignInsOf(..)) => "EndSignInsOf",
        Change::Credential(CredentialChange::PutKey(..)) => "PutKey",
        Change::Credential(CredentialChange::PutSigningKey(..)) => "PutSigningKey",
        Change::Credential(CredentialChange::RevokeTokens { .. }) => "RevokeTokens",
        Change::Credential(CredentialChange::RemoveKey(..)) => "RemoveKey",
        Change::Account(AccountChange::PutInvitation(..)) => "PutInvitation",
        Change::Account(AccountChange::UseInvitation(..)) => "UseInvitation",
        Change::Account(AccountChange::PutRoomInvitation(..)) => "PutRoomInvitation",
        Change::Account(AccountChange::RemoveRoomInvitation(..)) => "RemoveRoomInvitation",
        Change::Account(AccountChange::PutPairing(..)) => "PutPairing",
        Change::Account(AccountChange::RemovePairing(..)) => "RemovePairing",
        Change::Account(AccountChange::RemoveInvitation(..)) => "RemoveInvitation",
        Change::Model(ModelChange::PutRouter(..)) => "PutRouter",
        Change::Model(ModelChange::RemoveRouter(..)) => "RemoveRouter",
        Change::Model(ModelChange::PutService(..)) => "PutService",
        Change::Conversation(ConversationChange::AppendEntry(..)) => "AppendEntry",
        Change::Audit(AuditChange::AppendAudit(..)) => "AppendAudit",
        Change::Audit(AuditChange::RepeatAudit { .. }) => "RepeatAudit",
        Change::Settings(SettingsChange::PutSettings(..)) => "PutSettings",
        Change::Credential(CredentialChange::PutSecondFactor(..)) => "PutSecondFactor",
        Change::Credential(CredentialChange::PutBackupCodes(..)) => "PutBackupCodes",
        Change::Credential(CredentialChange::SpendBackupCode(..)) => "SpendBackupCode",
        Change::Credential(CredentialChange::RemoveSecondFactor(..)) => "RemoveSecondFactor",
        Change::Room(RoomChange::PutRoom(..)) => "PutRoom",
        Change::Room(RoomChange::RemoveRoom(..)) => "RemoveRoom",
        Change::Room(RoomChange::PutMember(..)) => "PutMember",
        Change::Room(RoomChange::RenameMember { .. }) => "RenameMember",
        Change::Room(RoomChange::RemoveMember(..)) => "RemoveMember",
        Change::Message(MessageChange::PutMessage(..)) => "PutMessage",
        Change::Message(MessageChange::Revise { .. }) => "Revise",
        Change::Message(MessageChange::DeleteMessage(..)) => "DeleteMessage",
        Change::Annotation(AnnotationChange::PutReactions { .. }) => "PutReactions",
        Change::Annotation(AnnotationChange::PutPin(..)) => "PutPin",
        Change::Annotation(AnnotationChange::RemovePin(..)) => "RemovePin",
        Change::Annotation(AnnotationChange::PutBookmark(..)) => "PutBookmark",
        Change::Annotation(AnnotationChange::RemoveBookmark(..)) => "RemoveBookmark",
        Change::Room(RoomChange::MarkRead { .. }) => "MarkRead",
        Change::Upload(UploadChange::PutUpload(..)) => "PutUpload",
        Change::Upload(UploadChange::Attach { .. }) => "Attach",
        Change::Upload(UploadChange::RemoveUpload(..)) => "RemoveUpload",
        Change::Upload(UploadChange::ForgetReleased(..)) => "ForgetReleased",
        Change::Agent(AgentChange::PutAgent(..)) => "PutAgent",
        Change::Agent(AgentChange::RemoveAgent(..)) => "RemoveAgent",
        Change::Agent(AgentChange::ReplaceAgent { .. }) => "ReplaceAgent",
        Change::Agent(AgentChange::PutGateway(..)) => "PutGateway",
        Change::Agent(AgentChange::RemoveGateway(..)) => "RemoveGateway",
        Change::Task(TaskChange::PutTask(..)) => "PutTask",
        Change::Task(TaskChange::RemoveTask(..)) => "RemoveTask",
        Change::Turn(TurnChange::AppendDecision(..)) => "AppendDecision",
        Change::Mail(MailChange::PutSession(..)) => "PutSession",
        Change::Mail(MailChange::PutSubscription(..)) => "PutSubscription",
        Change::Mail(MailChange::RemoveSubscription(..)) => "RemoveSubscription",
        Change::Mail(MailChange::PutDelivery { .. }) => "PutDelivery",
        Change::Mail(MailChange::MarkDelivered { .. }) => "MarkDelivered",
        Change::Mail(MailChange::Lease { .. }) => "Lease",
        Change::Mail(MailChange::SettleHeld { .. }) => "SettleHeld",
        Change::Mail(MailChange::DeadLetterDelivery { .. }) => "DeadLetterDelivery",
        Change::Mail(MailChange::MoveMail { .. }) => "MoveMail",
        Change::Run(RunChange::PutRun(..)) => "PutRun",
        Change::Approval(ApprovalChange::PutApproval(..)) => "PutApproval",
        Change::Approval(ApprovalChange::PutApprovalRule(..)) => "PutApprovalRule",
        Change::Run(RunChange::PutPlan(..)) => "PutPlan",
        Change::Mission(MissionChange::PutMission(..)) => "PutMission",
        Change::Mission(MissionChange::PutIdlePrompt { .. }) => "PutIdlePrompt",
        Change::Approval(ApprovalChange::RemoveApprovalRule(..)) => "RemoveApprovalRule",
        Change::Mail(MailChange::ReviveDelivery { .. }) => "ReviveDelivery",
        Change::Mail(MailChange::RemoveDeadLetter { .. }) => "RemoveDeadLetter",
        Change::Mail(MailChange::ClearDeadLetters) => "ClearDeadLetters",
        Change::Mail(MailChange::DeadLetter { .. }) => "DeadLetter",
        Change::Message(MessageChange::RememberIdempotencyKey { .. }) => "RememberIdempotencyKey",
    }
}
