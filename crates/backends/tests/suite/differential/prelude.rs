//! Initial users, rooms and agents of every history, created by commands that are compared like all others.

use super::agents::GATEWAYS;
use super::approvals::{REQUESTS, TOOLS};
use super::people::BACKUP_CODES;
use super::run::Run;
use crate::fixtures::{plan, questions};
use parlor_engine::commands::AnyCommand;
use parlor_model::command::{
    AddBookmark, AddMember, AddUpload, AgentProfile, AgentRegistration, AskApproval, ChangeSession,
    ChangeUser, ConfirmSecondFactor, ConnectGateway, CreateAgent, CreateInvitation, CreateKey, CreateRoom,
    CreateRouter, CreateService, CreateSignIn, CreateTask, CreateUser, DecideApproval, NewUser,
    OfferSecondFactor, OfferSetup, PinMessage, PromptIdle, RegisterAgent, RoomChanges, SessionChanges,
    SetMission, SetUp, StartUnpromptedRun, Subscribe, ToggleReaction, UpdatePlan, UserChanges,
};
use parlor_model::run_event::PlanState;
use parlor_model::{
    AgentId, ApprovalSubject, AutoRun, BlobDigest, Caller, Device, Edit, File, GatewayId, IdlePrompt,
    InputDigest, Mailbox, MediaType, MemberId, ModelAccess, ModelApi, Pattern, Payload, Post, Refusal,
    RoomId, RoomRole, Scope, SecretHash, SessionId, SignInId, SiteRole, TaskPriority, UserId,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::time::Duration;

/// The users that the prelude creates.
pub struct PreludeUsers {
    pub root: Caller,
    pub ann: Caller,
    pub bob: Caller,
    pub cyd: Caller,
}

/// Creates Root, a site admin with an invitation for two; Ann and Bob, each with a room and a hosted agent in
/// it; and Cyd in Bob's room, with a second factor. Ann, Bob and Cyd may receive `slack/**`. At least one
/// entity of each kind exists afterwards, so that it can be changed or removed.
pub async fn set_up(run: &mut Run) -> Result<PreludeUsers, TestCaseError> {
    let token = run.world.new_secret();
    let expires_at = run.world.now.plus(Duration::from_secs(3600));
    run.must(Caller::OPERATOR, OfferSetup { token, expires_at }).await?;
    run.must(Caller::ANONYMOUS, SetUp { token, account: account("root", SiteRole::Admin) }).await?;
    let root = sign_in(run).await?;
    let mut people = Vec::new();
    for name in ["ann", "bob", "cyd"] {
        run.must(root.clone(), CreateUser { account: account(name, SiteRole::User) }).await?;
        people.push(sign_in(run).await?);
        let user = run.world.users.last().expect("it was just created").clone();
        let hears = Some(vec![Pattern::parse("slack/**").unwrap()]);
        let changes = UserChanges { hears, ..Default::default() };
        run.must(root.clone(), ChangeUser { user, changes }).await?;
    }
    let [ann, bob, cyd] = <[Caller; 3]>::try_from(people).expect("three users were created");
    for (owner, invited, agent, gateway) in
        [(&ann, &bob, "coder", GATEWAYS[0]), (&bob, &cyd, "writer", GATEWAYS[1])]
    {
        let changes = RoomChanges { name: Some("A room".into()), ..Default::default() };
        let members = vec![MemberId::User(user_of(invited))];
        run.must(owner.clone(), CreateRoom { changes, members }).await?;
        let room = run.world.rooms.last().expect("it was just created").clone();
        let id = AgentId::stored(agent);
        let subscriptions = ["slack/**", "room/**"].map(|text| Pattern::parse(text).unwrap()).into();
        let profile = AgentProfile::default();
        run.must(owner.clone(), CreateAgent { id: id.clone(), profile, subscriptions }).await?;
        let new =
            ConnectGateway { id: GatewayId::stored(gateway), device: Device::default(), ephemeral: false };
        run.must(owner.clone(), new).await?;
        let registration = registration(GatewayId::stored(gateway), id.clone());
        run.must(owner.clone(), RegisterAgent { registration }).await?;
        let mailbox = Mailbox { agent: id.clone(), session: Some(SessionId::main()) };
        let pattern = Pattern::parse("slack/team").unwrap();
        run.must(owner.clone(), Subscribe { mailbox, pattern }).await?;
        let changes = SessionChanges { auto_run: Edit::Set(AutoRun::of(true)), ..SessionChanges::default() };
        let session = SessionId::stored("side");
        run.must(owner.clone(), ChangeSession { agent: id.clone(), session, changes }).await?;
        let (member, role) = (MemberId::Agent(id.clone()), RoomRole::Member);
        run.must(owner.clone(), AddMember { room: room.clone(), member, role, description: None }).await?;
        // A run that requests three approvals and reports a plan; the first approval becomes a rule.
        run.must(Caller::OPERATOR, StartUnpromptedRun { agent: id, room: room.clone() }).await?;
        let running = run.world.runs.last().expect("a run was just started").clone();
        let tool = || ApprovalSubject::Tool(Payload("{}".into()));
        for (request, subject) in
            REQUESTS.into_iter().zip([tool(), tool(), ApprovalSubject::Questions(questions())])
        {
            let request_approval = AskApproval {
                run: running.clone(),
                gateway: GatewayId::stored(gateway),
                request: request.into(),
                tool: TOOLS[0].into(),
                subject,
                digest: InputDigest([0; 32]),
                timeout: Duration::from_secs(300),
            };
            run.must(Caller::OPERATOR, request_approval).await?;
        }
        let plan = plan("0", PlanState::Planned);
        run.must(Caller::OPERATOR, UpdatePlan { run: running, plan }).await?;
        let approval = run.world.approvals[run.world.approvals.len() - REQUESTS.len()].clone();
        let allow = DecideApproval { approval, allow: true, always: true, reason: None, digest: None };
        run.must(owner.clone(), allow).await?;
        let post = Post {
            id: None,
            origin: None,
            author: None,
            room: room.clone(),
            text: "hello".into(),
            // The mention queues another run behind the running one.
            mentions: vec![agent.into()],
            reply_to: None,
            attachments: Vec::new(),
            client_message_id: Some("k1".into()),
        };
        run.must(owner.clone(), post.clone()).await?;
        let message = run.world.messages.last().expect("a message was just posted").clone();
        let reply_to = Some(message.clone());
        let answer = Post { reply_to, mentions: Vec::new(), client_message_id: None, ..post };
        run.must(invited.clone(), answer).await?;
        run.must(owner.clone(), task(room.clone(), AgentId::stored(agent))).await?;
        let agents = Vec::new();
        run.must(owner.clone(), SetMission { rooms: room.into(), text: "Order".into(), agents }).await?;
        run.must(invited.clone(), ToggleReaction { message: message.clone(), emoji: "+1".into() }).await?;
        run.must(owner.clone(), PinMessage { message: message.clone() }).await?;
        run.must(owner.clone(), AddBookmark { message }).await?;
        other_entities(run, owner).await?;
    }
    quiet_room(run, &ann).await?;
    let sealed: Box<[u8]> = [1].into();
    run.must(cyd.clone(), OfferSecondFactor { sealed: sealed.clone() }).await?;
    let backup_codes = BACKUP_CODES.map(|byte| SecretHash([byte; 32])).to_vec();
    run.must(cyd.clone(), ConfirmSecondFactor { sealed, step: 0, backup_codes }).await?;
    let service = CreateService {
        name: "Sage".into(),
        description: "knows".into(),
        active: true,
        model: model(),
        fallback: None,
        instructions: None,
        most_tokens: None,
    };
    run.must(root.clone(), service).await?;
    let secret = run.world.new_secret();
    let (role, expires_at) = (SiteRole::User, run.world.now.plus(Duration::from_secs(7 * 24 * 3600)));
    let invitation = CreateInvitation { role, note: None, uses: 2, expires_at, secret };
    run.must(root.clone(), invitation).await?;
    // A caller with a sign-in that never existed.
    run.world.callers.push(Caller::person(user_of(&ann), SignInId::stored("never")));
    Ok(PreludeUsers { root, ann, bob, cyd })
}

/// Creates an API key, an upload and a router of the user.
async fn other_entities(run: &mut Run, owner: &Caller) -> Result<(), TestCaseError> {
    let secret = run.world.new_secret();
    let key = CreateKey { owner: None, name: "script".into(), scopes: vec![Scope::Read], secret };
    run.must(owner.clone(), key).await?;
    let file = File { name: "cat.png".into(), media: MediaType::Png, size: 3 };
    let upload = AddUpload { file, digest: BlobDigest([0; 32]), avatar: false };
    run.must(owner.clone(), upload).await?;
    let router = CreateRouter { name: "Small".into(), shared: false, model: model() };
    run.must(owner.clone(), router).await
}

pub fn model() -> ModelAccess {
    ModelAccess {
        api: ModelApi::OpenAi,
        base_url: "https://a.example/".into(),
        model: "small".into(),
        key: None,
    }
}

pub fn task(room: RoomId, agent: AgentId) -> CreateTask {
    CreateTask {
        room,
        by: None,
        title: "Tidy up".into(),
        description: None,
        priority: TaskPriority::Medium,
        due_at: None,
        assignee: Some(MemberId::Agent(agent)),
        parent: None,
    }
}

/// Creates a room of Ann with a mission and an agent without runs, and prompts the agent.
async fn quiet_room(run: &mut Run, ann: &Caller) -> Result<(), TestCaseError> {
    let changes = RoomChanges { name: Some("A quiet room".into()), ..Default::default() };
    run.must(ann.clone(), CreateRoom { changes, members: Vec::new() }).await?;
    let (room, agent) =
        (run.world.rooms.last().expect("it was just created").clone(), AgentId::stored("idler"));
    let registration = registration(GatewayId::stored(GATEWAYS[0]), agent.clone());
    run.must(ann.clone(), RegisterAgent { registration }).await?;
    let (member, role) = (MemberId::Agent(agent.clone()), RoomRole::Member);
    run.must(ann.clone(), AddMember { room: room.clone(), member, role, description: None }).await?;
    let agents = vec![(agent.clone(), IdlePrompt::default())];
    run.must(ann.clone(), SetMission { rooms: room.into(), text: "Tea".into(), agents }).await?;
    let (mission, agent) = run.world.missions.last().expect("a mission was just set").clone();
    run.must(Caller::OPERATOR, PromptIdle { mission, agent }).await
}

pub fn registration(gateway: GatewayId, id: AgentId) -> AgentRegistration {
    AgentRegistration {
        gateway,
        name: id.as_str().into(),
        id,
        kind: "codex".into(),
        working_directory: None,
        capabilities: vec!["rewind".into()],
        model: None,
        slash_commands: None,
        mcp_servers: None,
        has_lasting_id: true,
    }
}

pub fn account(name: &str, role: SiteRole) -> NewUser {
    NewUser { username: name.into(), display_name: None, role, password_hash: "first".into() }
}

pub fn user_of(caller: &Caller) -> UserId {
    caller.user().expect("the caller is a user").clone()
}

/// Signs in the newest user for a week.
pub async fn sign_in(run: &mut Run) -> Result<Caller, TestCaseError> {
    let new = CreateSignIn {
        user: run.world.users.last().expect("it was just created").clone(),
        verified_password_hash: "first".into(),
        second: None,
        refresh: run.world.new_secret(),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at: run.world.now.plus(Duration::from_secs(7 * 24 * 3600)),
    };
    run.must(Caller::ANONYMOUS, new).await?;
    Ok(run.world.callers.last().expect("the sign-in above succeeded").clone())
}

impl Run {
    /// Executes a command that must be accepted. With `anonymous_tries_first`, checks before that an
    /// anonymous caller is refused.
    pub async fn must(
        &mut self,
        caller: Caller,
        command: impl Into<AnyCommand>,
    ) -> Result<(), TestCaseError> {
        let command = command.into();
        if self.anonymous_tries_first && !is_open_to_all(&command) {
            self.refused(Caller::ANONYMOUS, command.clone()).await?;
        }
        let outcomes = self.act(vec![(caller, command)]).await?;
        let refusals: Vec<Refusal> = outcomes.into_iter().filter_map(Result::err).collect();
        prop_assert_eq!(refusals, [], "the caller may execute this: {}", self.latest());
        Ok(())
    }

    pub async fn refused(
        &mut self,
        caller: Caller,
        command: impl Into<AnyCommand>,
    ) -> Result<(), TestCaseError> {
        let outcomes = self.act(vec![(caller, command.into())]).await?;
        prop_assert!(outcomes.iter().all(Result::is_err), "this must be refused: {}", self.latest());
        Ok(())
    }
}

/// Whether an anonymous caller may execute the command, because the command itself contains the credential.
fn is_open_to_all(command: &AnyCommand) -> bool {
    matches!(
        command,
        AnyCommand::CreateSignIn(_)
            | AnyCommand::RecordFailedSignIn(_)
            | AnyCommand::RefreshSignIn(_)
            | AnyCommand::SetUp(_)
            | AnyCommand::Register(_)
            | AnyCommand::RedeemPairingCode(_)
    )
}
