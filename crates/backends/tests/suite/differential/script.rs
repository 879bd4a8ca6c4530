//! Script after the prelude: commands that cover every remaining kind and every notable outcome.

use super::agents::{GATEWAYS, HEARTBEAT, mailbox_of};
use super::people::BACKUP_CODES;
use super::prelude::{PreludeUsers, account, model, registration, sign_in, task, user_of};
use super::run::Run;
use crate::fixtures::answer;
use parlor_engine::commands::AnyCommand;
use parlor_model::command::{
    AcceptRoomInvitation, AcknowledgeMail, AddBookmark, AddMember, AddUpload, AgentProfile,
    AgentRegistration, AnswerQuestions, AppendNoop, AskApproval, BatchVerdict, CancelRun, ChangeAgent,
    ChangeMember, ChangePassword, ChangeProfile, ChangeRoom, ChangeRoomPreferences, ChangeRouter,
    ChangeService, ChangeSettings, ChangeTask, ClearDeadLetters, ConfigureAgent, ConnectGateway,
    CreateRouter, CreateSignIn, CreateSigningKey, DecideApproval, DecideBatch, DecidePlan, DeleteMessage,
    DeleteMessages, DeleteRoom, DisconnectGateway, EditMessage, EndMission, EndOtherSignIns, EndSignIn,
    ExpireApproval, FinishRun, ForwardMessage, FreezeRoom, HostAgent, ImportMail, ImportedMessage,
    InviteToRoom, MarkAllRead, MarkRoomRead, MergeRun, MoveAgent, OfferPairing, PathMessage, PlanDecision,
    PostLateReply, PromptAgent, PromptMode, Publish, ReceiveMail, RecordBackup, RecordFailedSignIn,
    RedeemPairingCode, RefreshSignIn, Register, RegisterAgent, ReleaseBatch, RemoveAgent, RemoveBookmark,
    RemoveGateway, RemoveMember, RemoveRouter, RemoveSecondFactor, RemoveService, RemoveTask, RemoveUser,
    ReportTask, ReportUsage, ResendDeadLetter, RevokeApprovalRule, RevokeInvitation, RevokeKey,
    RevokeRoomInvitation, RevokeTokens, RewindRoom, RoomChanges, RouterChanges, SendHeartbeat,
    ServiceChanges, SetIdlePrompt, SetProjectRoot, SetUp, StartRun, StartTurn, StartUnpromptedRun, StopRuns,
    StopSession, TakeUnreferencedBlobs, TaskChanges, ThawRoom, ToggleReaction, TriggerTurn, TurnCause,
    TurnInput, UnpinMessage, Unsubscribe, WithdrawRuns,
};
use parlor_model::{
    AgentId, AgentReply, ApprovalId, ApprovalSubject, BlobDigest, Caller, Device, Edit, File, GatewayId,
    Grant, IdlePrompt, InputDigest, KeyGrant, KeyId, Mailbox, MediaType, MemberId, MessageId, Path, Pattern,
    Payload, Post, PostAuthor, Principal, Relay, RoomId, RoomPreferenceChange, RoomRole, RoomSelection,
    Route, RunId, RunOutcome, RunState, SealedKey, SecondProof, SecretHash, Seq, SessionId, SettingChanges,
    SiteRole, TaskStatus, Time, Usage, UserId,
};
use proptest::test_runner::TestCaseError;
use std::time::Duration;

const NEVER: SecretHash = SecretHash([9; 32]);

type ScriptResult = Result<(), TestCaseError>;

pub async fn execute(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    messages(run, users).await?;
    annotations(run, users).await?;
    files(run, users).await?;
    approvals(run, users).await?;
    runs(run, users).await?;
    mail(run, users).await?;
    rooms(run, users).await?;
    tasks_and_missions(run, users).await?;
    models(run, users).await?;
    accounts(run, users).await?;
    sign_ins(run, users).await?;
    automatic_turns(run, users).await?;
    agents(run, users).await?;
    removals(run, users).await?;
    run.must(Caller::OPERATOR, RecordBackup { through: Seq(7) }).await?;
    run.must(Caller::OPERATOR, AppendNoop).await
}

/// Ann's room, with Bob and the agent `coder`.
fn first_room(run: &Run) -> RoomId {
    run.world.rooms[0].clone()
}

/// Bob's room, with Cyd and the agent `writer`.
fn second_room(run: &Run) -> RoomId {
    run.world.rooms[1].clone()
}

/// Ann's second room, with only the agent `idler`.
fn quiet_room(run: &Run) -> RoomId {
    run.world.rooms[2].clone()
}

fn coder() -> AgentId {
    AgentId::stored("coder")
}

fn writer() -> AgentId {
    AgentId::stored("writer")
}

fn post(room: RoomId, text: &str) -> Post {
    Post {
        id: None,
        origin: None,
        author: None,
        room,
        text: text.into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    }
}

fn newest(run: &Run) -> MessageId {
    run.world.messages.last().expect("a message was posted").clone()
}

async fn messages(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, first) = (&users.ann, first_room(run));
    // Ann's first message again with the same idempotency key: first with the same text, then with another.
    let (sender, command) = run.world.posted[0].clone();
    run.must(sender.clone(), command.clone()).await?;
    let AnyCommand::Post(first_post) = command else { unreachable!("the first posted command is a post") };
    run.refused(sender, Post { text: "other words".into(), ..first_post }).await?;

    let deleted = Post { client_message_id: Some("k2".into()), ..post(first.clone(), "gone") };
    run.must(ann.clone(), deleted.clone()).await?;
    let message = newest(run);
    run.must(ann.clone(), DeleteMessage { message }).await?;
    run.must(ann.clone(), deleted).await?;

    // An id that Ann chose: repeated, with another text, by another sender, and of a deleted message.
    let chosen = Post { id: Some(MessageId::stored("chosen")), ..post(first.clone(), "my id") };
    run.must(ann.clone(), chosen.clone()).await?;
    run.must(ann.clone(), chosen.clone()).await?;
    run.refused(ann.clone(), Post { text: "another text".into(), ..chosen.clone() }).await?;
    run.refused(users.bob.clone(), chosen.clone()).await?;
    run.must(ann.clone(), DeleteMessage { message: MessageId::stored("chosen") }).await?;
    run.refused(ann.clone(), chosen).await?;
    // A message of Ann's agent, which mentions no agent.
    let author = PostAuthor { agent: coder(), claimed_depth: 1, claimed_chain: vec!["writer".into()] };
    let by_agent = Post { author: Some(Box::new(author)), ..post(first.clone(), "my agent") };
    run.must(ann.clone(), by_agent.clone()).await?;
    run.refused(users.bob.clone(), by_agent).await?;

    // Bob replied to Ann in the prelude; a reply to Bob's message belongs to the thread of Ann's message.
    let reply_to = Some(run.world.said[1].1.clone());
    run.must(ann.clone(), Post { reply_to, ..post(first.clone(), "indeed") }).await?;
    let message = newest(run);
    run.must(ann.clone(), EditMessage { message: message.clone(), text: "in truth".into() }).await?;
    let forward = ForwardMessage { message, room: quiet_room(run), client_message_id: None };
    run.must(ann.clone(), forward).await?;
    run.must(ann.clone(), DeleteMessages { messages: vec![newest(run)] }).await?;

    run.must(ann.clone(), post(quiet_room(run), "never mind")).await?;
    let rewind = RewindRoom { room: quiet_room(run), message: newest(run) };
    run.must(ann.clone(), rewind).await?;
    let prompt = |rooms, text: &str| {
        let (text, mode) = (text.into(), PromptMode::Plan);
        PromptAgent { agent: coder(), rooms, text, mode, attachments: Vec::new() }
    };
    run.must(ann.clone(), prompt(RoomSelection::EMPTY, "a word?")).await?;
    run.must(ann.clone(), prompt(quiet_room(run).into(), "@idler a word?")).await?;
    run.must(users.bob.clone(), MarkRoomRead { room: first }).await?;
    run.must(users.bob.clone(), MarkAllRead).await
}

async fn annotations(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, message) = (&users.ann, run.world.said[0].1.clone());
    let react = |emoji: &str| ToggleReaction { message: message.clone(), emoji: emoji.into() };
    run.must(ann.clone(), react("+1")).await?;
    run.must(ann.clone(), react("'\"")).await?;
    run.refused(ann.clone(), react("\u{1f980}")).await?;
    run.must(ann.clone(), UnpinMessage { message: message.clone() }).await?;
    run.must(ann.clone(), AddBookmark { message: message.clone() }).await?;
    run.must(ann.clone(), RemoveBookmark { message }).await
}

async fn files(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let ann = &users.ann;
    let attachments = vec![run.world.uploads[0].as_str().into()];
    run.must(ann.clone(), Post { attachments, ..post(first_room(run), "a cat") }).await?;
    // Of two avatar uploads, the one that the profile does not show is released.
    for digest in [2, 3] {
        let file = File { name: "me.png".into(), media: MediaType::Png, size: 3 };
        let new = AddUpload { file, digest: BlobDigest([digest; 32]), avatar: true };
        run.must(ann.clone(), new).await?;
    }
    let shown = format!("/uploads/{}", run.world.uploads.last().expect("an upload was just created"));
    let change = ChangeProfile { display_name: Some("Ann Lee".into()), avatar_url: Edit::Set(shown.into()) };
    run.must(ann.clone(), change).await?;
    run.must(Caller::OPERATOR, TakeUnreferencedBlobs { limit: 1 }).await
}

/// Decides the approvals of `coder`'s run in the first room. The prelude made the first one a rule; the
/// second and the third are open.
async fn approvals(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, bob) = (&users.ann, &users.bob);
    let [tool, questions] = [1, 2].map(|number| run.world.approvals[number].clone());
    let deny = DecideApproval {
        approval: tool,
        allow: false,
        always: false,
        reason: Some("no 'thanks'".into()),
        digest: None,
    };
    run.must(bob.clone(), deny.clone()).await?;
    run.refused(ann.clone(), deny).await?;
    let answer = AnswerQuestions { approval: questions, answers: vec![answer(0, &["Tea"], None)] };
    run.must(bob.clone(), answer).await?;
    ask(run, "by rule").await?;
    let (room, agent) = (first_room(run), coder());
    run.must(ann.clone(), RevokeApprovalRule { room, agent, tool: "Bash".into() }).await?;
    let approval = ask(run, "expires").await?;
    run.must(Caller::OPERATOR, ExpireApproval { approval }).await
}

async fn ask(run: &mut Run, request: &str) -> Result<ApprovalId, TestCaseError> {
    let request_approval = AskApproval {
        run: run.world.runs[0].clone(),
        gateway: GatewayId::stored(GATEWAYS[0]),
        request: request.into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload("{}".into())),
        digest: InputDigest([0; 32]),
        timeout: Duration::from_secs(300),
    };
    run.must(Caller::OPERATOR, request_approval).await?;
    Ok(run.world.approvals.last().expect("an approval was just requested").clone())
}

async fn runs(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (first, running) = (first_room(run), run.world.runs[0].clone());
    let (rooms, verdict) = (first.clone().into(), PlanDecision::Approve);
    run.must(users.ann.clone(), DecidePlan { agent: coder(), rooms, verdict }).await?;
    let usage = Usage { input_tokens: 3, output_tokens: 2, cost: Some(1) };
    run.must(Caller::OPERATOR, ReportUsage { run: running.clone(), usage }).await?;
    let reply = |text: &str| AgentReply {
        message: None,
        text: text.into(),
        chunks: Vec::new(),
        target: None,
        claimed_depth: 0,
        claimed_chain: Vec::new(),
        origin: None,
    };
    let finished = FinishRun { run: running, outcome: RunOutcome::Complete, said: Some(reply("done")) };
    run.must(Caller::OPERATOR, finished).await?;
    // Two runs of `coder` were queued in the meantime: start the first and merge the second into it.
    let [next, another] = [0, 1].map(|number| queued(run, &first)[number].clone());
    run.must(Caller::OPERATOR, StartRun { run: next.clone() }).await?;
    run.must(Caller::OPERATOR, MergeRun { run: another, into: next.clone() }).await?;
    // The run is interrupted, and its reply arrives late.
    let finished = FinishRun { run: next.clone(), outcome: RunOutcome::Interrupted, said: None };
    run.must(Caller::OPERATOR, finished).await?;
    let said = reply("late");
    let late = PostLateReply { agent: coder(), room: first.clone(), said, run: Some(next) };
    run.must(Caller::OPERATOR, late).await?;
    stops(run, users, first).await?;
    sessions(run, users).await
}

/// Withdraws the queued runs of `coder`, and stops an active one twice.
async fn stops(run: &mut Run, users: &PreludeUsers, room: RoomId) -> ScriptResult {
    let (ann, agent) = (&users.ann, coder());
    run.must(Caller::OPERATOR, StartUnpromptedRun { agent: agent.clone(), room: room.clone() }).await?;
    let active = run.world.runs.last().expect("a run was just started").clone();
    let mention = Post { mentions: vec!["coder".into()], ..post(room.clone(), "wait") };
    run.must(ann.clone(), mention).await?;
    assert_ne!(queued(run, &room).len(), 0);
    run.must(ann.clone(), WithdrawRuns { room: room.clone(), agent: None, run: None }).await?;
    assert_eq!(queued(run, &room).len(), 0);
    run.must(ann.clone(), CancelRun { run: active.clone() }).await?;
    run.must(ann.clone(), StopRuns { room, agent }).await?;
    let finished = FinishRun { run: active, outcome: RunOutcome::Cancelled, said: None };
    run.must(Caller::OPERATOR, finished).await
}

/// Runs `coder` in a session without a room: to its end, and until it is stopped.
async fn sessions(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (agent, session) = (coder(), SessionId::stored("side"));
    let cause = || TurnCause::Explicit { prompt: "tea".into() };
    let turn = || StartTurn { agent: agent.clone(), session: session.clone(), cause: cause() };
    run.must(users.ann.clone(), turn()).await?;
    let id = run.world.runs.last().expect("a run was just queued").clone();
    run.must(Caller::OPERATOR, StartRun { run: id.clone() }).await?;
    run.must(Caller::OPERATOR, FinishRun { run: id, outcome: RunOutcome::Complete, said: None }).await?;
    run.must(users.ann.clone(), turn()).await?;
    run.must(users.ann.clone(), StopSession { agent: agent.clone(), session: session.clone() }).await
}

/// Mail of `coder` starts a run that fails, and a user triggers another one.
async fn automatic_turns(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, session) = (&users.ann, SessionId::main());
    let settings = vec![("heartbeat".into(), Payload(HEARTBEAT.into()))];
    run.must(
        ann.clone(),
        ChangeAgent { id: coder(), profile: AgentProfile { settings, ..AgentProfile::default() } },
    )
    .await?;
    let beat = |agent| SendHeartbeat { agent, cron: HEARTBEAT.trim_matches('"').into() };
    run.refused(Caller::OPERATOR, beat(AgentId::stored("never"))).await?;
    run.must(Caller::OPERATOR, beat(coder())).await?;
    let (own, now) = (Mailbox::of(coder()), run.world.now.plus(Duration::from_secs(60)));
    let mail = run.oracle().read(|store| store.unhandled(&own, now, 9));
    let messages: Vec<_> = mail.into_iter().map(|(message, _)| message.id.clone()).collect();
    assert_ne!(messages.len(), 0);
    let decide = |verdict| DecideBatch {
        agent: coder(),
        session: session.clone(),
        messages: messages.clone(),
        verdict,
    };
    run.must(Caller::OPERATOR, decide(BatchVerdict::Hold { reason: "wait".into() })).await?;
    run.refused(ann.clone(), decide(BatchVerdict::Start { reason: "go".into() })).await?;
    run.must(Caller::OPERATOR, decide(BatchVerdict::Start { reason: "go".into() })).await?;
    let id = run.world.runs.last().expect("a run was just queued").clone();
    run.must(Caller::OPERATOR, StartRun { run: id.clone() }).await?;
    let outcome = RunOutcome::Failed("it broke".into());
    run.must(Caller::OPERATOR, FinishRun { run: id, outcome, said: None }).await?;
    let release = ReleaseBatch { agent: coder(), session: session.clone() };
    run.refused(ann.clone(), release.clone()).await?;
    run.must(Caller::OPERATOR, release).await?;
    let trigger =
        TriggerTurn { agent: coder(), session: session.clone(), input: TurnInput::Prompt("go".into()) };
    run.refused(users.bob.clone(), trigger.clone()).await?;
    run.must(ann.clone(), trigger).await?;
    run.must(ann.clone(), StopSession { agent: coder(), session }).await
}

/// Queued runs of `coder` in a room, oldest first.
fn queued(run: &Run, room: &RoomId) -> Vec<RunId> {
    let open = run.oracle().read(|store| store.open_runs());
    let of_coder = open.into_iter().filter(|open| open.agent == coder() && open.room() == Some(room));
    of_coder.filter(|open| open.state == RunState::Queued).map(|open| open.id.clone()).collect()
}

async fn mail(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, bob, root) = (&users.ann, &users.bob, &users.root);
    let route = |from: &str, path: &str, external_id: &str| Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload("{}".into()),
        text: Some("hello".into()),
        source: "slack".into(),
        external_id: Some(external_id.into()),
    };
    run.must(root.clone(), route("bridge", "slack/team", "e1")).await?;
    run.must(ann.clone(), route("coder", "agent/**", "e2")).await?;
    let message = |name: &str, external_id: &str| PathMessage {
        name: name.into(),
        payload: Payload("{}".into()),
        external_id: external_id.into(),
        connection: Some("c1".into()),
    };
    let publish = Publish {
        path: Path::parse("slack/team").unwrap(),
        sender_name: "bridge".into(),
        source: "slack".into(),
        messages: vec![message("tick", "p1"), message("tock", "p2")],
    };
    run.must(root.clone(), publish.clone()).await?;
    run.must(root.clone(), publish).await?;
    let relay = Relay {
        room: run.world.rooms[0].clone(),
        author: "coder".into(),
        recipient: Some("writer".into()),
        observers: vec!["stranger".into()],
        text: "a line".into(),
        continues: run.world.messages.first().cloned(),
        source: "chatmd".into(),
        external_id: Some("e3".into()),
    };
    run.must(ann.clone(), relay).await?;

    let take = |mailbox: &Mailbox, lease| ReceiveMail { mailbox: mailbox.clone(), limit: 1000, lease };
    let main = mailbox_of(coder(), Some("main"));
    run.must(ann.clone(), take(&main, None)).await?;
    let lease = Some(Duration::from_millis(1));
    let own = mailbox_of(writer(), None);
    for _ in 0..2 {
        run.must(bob.clone(), take(&own, lease)).await?;
        run.move_clock(1);
    }
    let leased = run.world.handed_out.iter().filter(|(mailbox, _)| *mailbox == own);
    let messages = leased.map(|(_, message)| message.clone()).collect();
    run.must(bob.clone(), AcknowledgeMail { mailbox: own, messages }).await?;
    // Mail that is leased repeatedly and never acknowledged becomes dead.
    let neglected = mailbox_of(writer(), Some("main"));
    for _ in 0..6 {
        run.must(bob.clone(), take(&neglected, lease)).await?;
        run.move_clock(1);
    }
    run.compare().await?;
    let died = run.world.handed_out.iter().find(|(mailbox, _)| *mailbox == neglected);
    let message = died.map(|(_, message)| message.clone()).expect("the mailbox had mail");
    let resend = |mailbox| ResendDeadLetter { message: message.clone(), mailbox };
    run.must(root.clone(), resend(Some(neglected.clone()))).await?;
    run.refused(root.clone(), resend(Some(neglected))).await?;
    run.refused(root.clone(), resend(None)).await?;
    run.must(root.clone(), ClearDeadLetters).await?;

    let pattern = Pattern::parse("slack/team").unwrap();
    run.must(ann.clone(), Unsubscribe { mailbox: main, pattern }).await?;
    let (mailbox, own) = (Mailbox::of(coder()), Pattern::stored(Path::of_agent(&coder()).as_str()));
    run.refused(ann.clone(), Unsubscribe { mailbox, pattern: own }).await
}

async fn rooms(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, bob, first, second) = (&users.ann, &users.bob, first_room(run), second_room(run));
    let changes = RoomChanges { name: Some("Den".into()), ..RoomChanges::default() };
    run.must(ann.clone(), ChangeRoom { room: first.clone(), changes }).await?;
    let root = Some("/srv/a b".into());
    run.must(Caller::OPERATOR, SetProjectRoot { room: first.clone(), root, there: true }).await?;
    run.must(bob.clone(), FreezeRoom { room: first.clone() }).await?;
    run.must(bob.clone(), ThawRoom { room: first.clone() }).await?;
    run.must(bob.clone(), ChangeRoomPreferences { room: first, how: RoomPreferenceChange::Pin }).await?;
    room_invitations(run, users).await?;
    let member = MemberId::User(user_of(&users.cyd));
    let (role, description) = (Some(RoomRole::Admin), Some(Some("keeps order".into())));
    let change =
        ChangeMember { room: second.clone(), member: member.clone(), role, description: description.into() };
    run.must(bob.clone(), change).await?;
    run.must(bob.clone(), RemoveMember { room: second, member }).await
}

/// Root joins the second room with an invitation and is removed again; a second invitation is revoked.
async fn room_invitations(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (root, bob, room) = (&users.root, &users.bob, second_room(run));
    let expires_at = run.world.now.plus(Duration::from_secs(3600));
    for _ in 0..2 {
        let (room, sealed) = (room.clone(), SealedKey([1].into()));
        let (role, secret) = (RoomRole::Member, run.world.new_secret());
        run.must(bob.clone(), InviteToRoom { room, role, expires_at, secret, sealed }).await?;
    }
    let [(_, _, token), (_, invitation, _)] = &run.world.room_invitations[..2] else {
        unreachable!("two exist")
    };
    let (token, invitation) = (*token, invitation.clone());
    run.refused(root.clone(), AcceptRoomInvitation { token: NEVER }).await?;
    run.must(root.clone(), AcceptRoomInvitation { token }).await?;
    run.refused(root.clone(), AcceptRoomInvitation { token }).await?;
    run.must(bob.clone(), RevokeRoomInvitation { room: room.clone(), invitation }).await?;
    run.must(bob.clone(), RemoveMember { room, member: MemberId::User(user_of(root)) }).await
}

async fn tasks_and_missions(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (bob, second) = (&users.bob, second_room(run));
    let task = run.world.tasks[1].clone();
    let changes = TaskChanges { title: Some("Tidy up twice".into()), ..TaskChanges::default() };
    run.must(bob.clone(), ChangeTask { task: task.clone(), changes }).await?;
    let (status, result) = (TaskStatus::Completed, Some("tidy".into()));
    let report = ReportTask { task: task.clone(), agent: writer(), status, result };
    run.must(bob.clone(), report).await?;
    run.must(bob.clone(), RemoveTask { task }).await?;
    let idle = Some(IdlePrompt { prompt: Some("Look at it".into()), interval: Some(60) });
    run.must(bob.clone(), SetIdlePrompt { agent: writer(), rooms: second.clone().into(), idle }).await?;
    run.must(bob.clone(), EndMission { rooms: second.into() }).await
}

/// Creates and revokes keys that sign tokens, with revocations of their tokens.
async fn signing_keys(run: &mut Run, root: &Caller) -> ScriptResult {
    for name in ["first", "second"] {
        let id = KeyId::stored(name);
        let grant = KeyGrant { places: Grant::everything().into(), notation: "{}".into() };
        let (secret, sealed) = (run.world.new_secret(), SealedKey([1].into()));
        let new = CreateSigningKey { id: id.clone(), owner: None, name: name.into(), grant, secret, sealed };
        run.must(root.clone(), new).await?;
        for targets in [["client:a", "client:b"], ["client:b", "place:c"]] {
            let targets = targets.map(Box::from).to_vec();
            let revoked = RevokeTokens { key: id.clone(), targets, issued_before: run.world.now };
            run.must(root.clone(), revoked).await?;
        }
    }
    run.must(root.clone(), RevokeKey { key: KeyId::stored("first") }).await
}

async fn models(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (root, ann) = (&users.root, &users.ann);
    run.must(root.clone(), CreateRouter { name: "Large".into(), shared: true, model: model() }).await?;
    let router = run.world.routers[0].clone();
    let changes = RouterChanges { name: Some("Tiny".into()), ..RouterChanges::default() };
    run.must(ann.clone(), ChangeRouter { router: router.clone(), changes }).await?;
    run.must(ann.clone(), RemoveRouter { router }).await?;
    let agent = run.world.services[0].clone();
    let changes = ServiceChanges { name: Some("Seer".into()), ..ServiceChanges::default() };
    run.must(root.clone(), ChangeService { agent: agent.clone(), changes }).await?;
    run.must(root.clone(), RemoveService { agent }).await
}

async fn accounts(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let root = &users.root;
    let changes = SettingChanges { name: Edit::Set("Den".into()), ..SettingChanges::default() };
    run.must(root.clone(), ChangeSettings { changes }).await?;
    run.refused(Caller::ANONYMOUS, SetUp { token: NEVER, account: account("eve", SiteRole::Admin) }).await?;

    let (invitation, token) = run.world.invitations[0].clone();
    let register = |token| Register { token: Some(token), account: account("dora", SiteRole::User) };
    run.refused(Caller::ANONYMOUS, register(NEVER)).await?;
    run.must(Caller::ANONYMOUS, register(token)).await?;
    let dora = sign_in(run).await?;
    run.must(root.clone(), RevokeInvitation { invitation }).await?;

    let (code, secret) = (run.world.new_secret(), run.world.new_secret());
    let expires_at = run.world.now.plus(Duration::from_secs(3600));
    run.must(dora.clone(), OfferPairing { code, expires_at }).await?;
    let pair = |code| RedeemPairingCode { code, name: "laptop".into(), secret };
    run.refused(Caller::ANONYMOUS, pair(NEVER)).await?;
    run.must(Caller::ANONYMOUS, pair(code)).await?;
    let key = run.world.keys.last().expect("a key was just created").clone();
    run.must(dora.clone(), RevokeKey { key }).await?;
    signing_keys(run, root).await?;

    let change = ChangePassword { verified_password_hash: "first".into(), password_hash: "second".into() };
    run.must(dora.clone(), change).await?;
    run.must(root.clone(), RemoveUser { user: user_of(&dora) }).await
}

async fn sign_ins(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let cyd = user_of(&users.cyd);
    let expires_at = run.world.now.plus(Duration::from_secs(7 * 24 * 3600));
    let device = |run: &mut Run, password_hash: &str| CreateSignIn {
        user: cyd.clone(),
        verified_password_hash: password_hash.into(),
        second: Some(SecondProof::Backup(SecretHash([BACKUP_CODES[0]; 32]))),
        refresh: run.world.new_secret(),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at,
    };
    let wrong = device(run, "wrong");
    run.refused(Caller::ANONYMOUS, wrong).await?;
    let right = device(run, "first");
    run.must(Caller::ANONYMOUS, right).await?;
    let (sign_in, token) =
        (run.world.sign_ins.last().cloned(), *run.world.tokens.last().expect("a token was just issued"));

    let (next, after) = (run.world.new_secret(), run.world.new_secret());
    let refresh = |token, next| RefreshSignIn { token, next, expires_at, grace: Duration::ZERO };
    run.refused(Caller::ANONYMOUS, refresh(NEVER, after)).await?;
    run.must(Caller::ANONYMOUS, refresh(token, next)).await?;
    // Reuse of the first refresh token means theft: the hub revokes the token family.
    run.must(Caller::ANONYMOUS, refresh(token, after)).await?;
    let ended = EndSignIn { sign_in: sign_in.expect("the sign-in above succeeded") };
    run.refused(users.cyd.clone(), ended).await?;

    let failed = |user| RecordFailedSignIn {
        user: Some(user),
        second_factor: false,
        lock_after: 3,
        lock_until: expires_at,
    };
    run.refused(Caller::ANONYMOUS, failed(UserId::stored("never"))).await?;
    run.must(Caller::ANONYMOUS, failed(cyd.clone())).await?;
    run.must(Caller::OPERATOR, RemoveSecondFactor { user: cyd, verified_password_hash: None }).await
}

async fn agents(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, bob, gateway) = (&users.ann, &users.bob, GatewayId::stored(GATEWAYS[0]));
    let profile = AgentProfile { description: Some("writes code".into()), ..AgentProfile::default() };
    run.must(ann.clone(), ChangeAgent { id: coder(), profile }).await?;
    let new = ConnectGateway { id: gateway.clone(), device: Device::default(), ephemeral: false };
    run.refused(bob.clone(), new).await?;
    let registration = registration(GatewayId::stored("hub"), AgentId::stored("helper"));
    run.must(Caller::OPERATOR, HostAgent { owner: user_of(ann), registration }).await?;
    let configure = |id: &str, owner: &Caller| ConfigureAgent {
        owner: user_of(owner),
        creates: true,
        registration: self::registration(GatewayId::stored("hub"), AgentId::stored(id)),
        description: "from a folder".into(),
        settings: Vec::new(),
        subscriptions: Vec::new(),
        sessions: Vec::new(),
    };
    run.must(Caller::OPERATOR, configure("foldered", ann)).await?;
    run.refused(Caller::OPERATOR, configure("foldered", bob)).await?;
    let import = ImportMail {
        mailbox: Some(Mailbox::of(AgentId::stored("foldered"))),
        messages: vec![ImportedMessage {
            id: MessageId::stored("from-a-file"),
            at: Time(1),
            from: "slack".into(),
            path: Path::stored("slack/acme"),
            command: "say".into(),
            payload: Payload("{}".into()),
            source: "slack".into(),
            external_id: None,
            is_delivered: false,
        }],
    };
    run.must(Caller::OPERATOR, import.clone()).await?;
    run.refused(ann.clone(), import).await?;
    let moved = || MoveAgent { from: AgentId::stored("foldered"), to: AgentId::stored("helper") };
    run.must(Caller::OPERATOR, moved()).await?;
    run.refused(Caller::OPERATOR, moved()).await?;
    takeover(run, users).await?;
    run.must(ann.clone(), DisconnectGateway { gateway }).await
}

/// An agent whose gateway gives it a new id replaces the offline agent with its name, which has a room, mail that a run
/// holds, a queued run and a task.
async fn takeover(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, room, phone) = (&users.ann, first_room(run), GatewayId::stored("phone"));
    let [old, new] = ["hermes-1", "hermes-2"].map(AgentId::stored);
    let register = |id: &AgentId, gateway: &GatewayId| {
        let registration = registration(gateway.clone(), id.clone());
        let (name, has_lasting_id) = ("Hermes".into(), false);
        RegisterAgent { registration: AgentRegistration { name, has_lasting_id, ..registration } }
    };
    let connect = ConnectGateway { id: phone.clone(), device: Device::default(), ephemeral: false };
    run.must(ann.clone(), connect).await?;
    run.must(ann.clone(), register(&old, &phone)).await?;
    let (member, role) = (MemberId::Agent(old.clone()), RoomRole::Member);
    run.must(ann.clone(), AddMember { room: room.clone(), member, role, description: None }).await?;
    run.must(ann.clone(), task(room.clone(), old.clone())).await?;
    let message = Route {
        from: "coder".into(),
        path: Path::of_agent(&old),
        command: "say".into(),
        payload: Payload("{}".into()),
        text: None,
        source: "internal".into(),
        external_id: None,
    };
    run.must(ann.clone(), message).await?;
    let held = newest(run);
    let batch = DecideBatch {
        agent: old.clone(),
        session: SessionId::main(),
        messages: vec![held.clone()],
        verdict: BatchVerdict::Start { reason: "go".into() },
    };
    run.must(Caller::OPERATOR, batch).await?;
    let holding = run.world.runs.last().expect("a run was just queued").clone();
    run.must(Caller::OPERATOR, StartRun { run: holding.clone() }).await?;
    let mention = Post { mentions: vec!["Hermes".into()], ..post(room, "later") };
    run.must(ann.clone(), mention).await?;
    run.must(ann.clone(), DisconnectGateway { gateway: phone }).await?;
    run.compare().await?;

    // Two commands, whose published events are compared between the stores only: the log contains the runs and the members
    // of rooms as they are after the takeover, which publishes states in between.
    let register = register(&new, &GatewayId::stored(GATEWAYS[0]));
    let commands = vec![(ann.clone(), register.into()), (Caller::OPERATOR, AppendNoop.into())];
    let results = run.act(commands).await?;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    run.compare().await?;
    assert!(run.oracle().read(|store| store.agent(&old)).is_none());
    let state = run.oracle().read(|store| store.run(&holding)).map(|run| run.state);
    assert_eq!(state, Some(RunState::Ended(RunOutcome::Interrupted)));
    let open = run.oracle().read(|store| store.open_runs());
    let continued = open.iter().filter(|run| run.agent == new && run.lineage.chain == [new.clone()]);
    assert_eq!(continued.count(), 2, "the runs of the task and of the mention continue");
    let own = Mailbox::of(new);
    let later = run.world.now.plus(Duration::from_secs(60));
    let pending = run.oracle().read(|store| store.pending(&own, later, 9));
    assert!(pending.iter().any(|(message, _)| message.id == held), "its mail is not held");
    Ok(())
}

async fn removals(run: &mut Run, users: &PreludeUsers) -> ScriptResult {
    let (ann, bob) = (&users.ann, &users.bob);
    run.must(ann.clone(), RemoveAgent { id: AgentId::stored("idler") }).await?;
    run.must(ann.clone(), DeleteRoom { room: quiet_room(run) }).await?;
    run.must(bob.clone(), RemoveGateway { gateway: GatewayId::stored(GATEWAYS[1]) }).await?;
    run.refused(Caller::ANONYMOUS, EndOtherSignIns).await?;
    run.must(bob.clone(), EndOtherSignIns).await?;
    let Principal::Person { sign_in, .. } = &bob.principal else { unreachable!("Bob signed in as a user") };
    run.must(bob.clone(), EndSignIn { sign_in: sign_in.clone() }).await
}
