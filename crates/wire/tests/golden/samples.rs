//! Values of the model from which the frames are encoded, with all optional fields set or all absent.

use parlor_model::run_event::{
    Activity, ChangeReport, ChangedFile, Choice, ContextUsage, Plan, PlanState, PlanStep, Question,
    QuestionAnswer, Questions, StepState, Stream, Subagent, SubagentChange, SubagentOutcome, UsageReport,
};
use parlor_model::*;
use std::sync::Arc;

pub const EPOCH: Epoch = Epoch(0x1f);
pub const AT: Position = Position { epoch: EPOCH, seq: Seq(7) };
/// 2020-09-13T12:26:40.000005Z
pub const NOW: Time = Time(1_600_000_000_000_005);

pub fn room_id() -> RoomId {
    RoomId::stored("r")
}

pub fn agent_id() -> AgentId {
    AgentId::stored("team/coder")
}

pub fn user_id() -> UserId {
    UserId::stored("u")
}

pub fn message_id() -> MessageId {
    MessageId::stored("m")
}

pub fn run_id() -> RunId {
    RunId::stored("t")
}

pub fn logged(event: Event) -> LoggedEvent {
    LoggedEvent { seq: Seq(7), at: NOW, event }
}

pub fn message() -> Message {
    Message {
        id: message_id(),
        seq: Seq(7),
        at: NOW,
        destination: Destination::Room(room_id()),
        sender: Sender::User(user_id()),
        sender_name: "Ann".into(),
        kind: MessageKind::Text,
        text: "hi \"you\"\n".into(),
        mentions: Vec::new(),
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: "client".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
        origin: None,
        answer: None,
    }
}

pub fn reactions() -> Vec<Reaction> {
    let person = |id: &str, name: &str| Reactor { user: UserId::stored(id), username: name.into() };
    vec![Reaction { emoji: "👍".into(), people: vec![person("u", "ann"), person("v", "bob")] }]
}

/// A message with every optional field.
pub fn full_message() -> Message {
    let file = File { name: "cat.png".into(), media: MediaType::Png, size: 9 };
    let forwarded = Forwarded {
        message: MessageId::stored("f"),
        sender: Sender::Source("slack".into()),
        sender_name: "Slack".into(),
        at: Time(1_000_001),
    };
    let relayed = Relayed {
        author: "outside".into(),
        verified: true,
        recipient: Some("coder".into()),
        observers: vec!["bob".into()],
        lineage: None,
    };
    Message {
        mentions: vec![Mention { member: MemberId::Agent(agent_id()), name: "Coder".into() }],
        reply_to: Some(MessageId::stored("p")),
        thread: Some(MessageId::stored("o")),
        reactions: reactions(),
        forwarded: Some(Box::new(forwarded)),
        attachments: vec![Attachment { id: UploadId::stored("f1"), file }],
        client_message_id: Some("c1".into()),
        external_id: Some("x1".into()),
        edited_at: Some(Time(NOW.0 + 1_000_000)),
        relayed: Some(Box::new(relayed)),
        ..message()
    }
}

pub fn chunk(kind: ChunkKind, metadata: Option<&str>) -> Chunk {
    Chunk { kind, content: "par\"t".into(), metadata: metadata.map(|text| Payload(text.into())) }
}

/// Reply of a run.
pub fn reply() -> Message {
    let chunks = vec![
        chunk(ChunkKind::Thinking, None),
        chunk(ChunkKind::ToolUse, Some(r#"{"toolName":"Bash","n":1.50,"x":null}"#)),
        chunk(ChunkKind::Text, Some("[1]")),
    ];
    let output = RunOutput { run: run_id(), outcome: RunOutcome::Complete, chunks };
    Message {
        sender: Sender::Agent(agent_id()),
        sender_name: "Coder".into(),
        kind: MessageKind::AgentResponse,
        run_output: Some(Arc::new(output)),
        ..message()
    }
}

/// Prompt of a mission to an idle agent.
pub fn idle_prompt() -> Message {
    Message { source: mission::SOURCE.into(), external_id: Some("mission".into()), ..full_message() }
}

/// Message of an external source.
pub fn routed() -> Message {
    Message {
        destination: Destination::Path(Path::stored("slack/general")),
        sender: Sender::Source("slack".into()),
        sender_name: "slack".into(),
        command: Some("notify".into()),
        payload: Some(Payload(r#"{"n":12345678901234567890.10,"text":"hi"}"#.into())),
        source: "external".into(),
        external_id: Some("x1".into()),
        ..message()
    }
}

pub fn room() -> Room {
    Room {
        id: room_id(),
        name: "Kitchen".into(),
        kind: RoomKind::Group,
        policy: AnswerPolicy::Mention,
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Admin,
        router: None,
        frozen: None,
        project_root: None,
        description: None,
        created_by: user_id(),
        created_at: NOW,
        updated_at: NOW,
    }
}

/// A room with every optional field.
pub fn full_room() -> Room {
    Room {
        policy: AnswerPolicy::Triage,
        system_prompt: Some("Be kind.".into()),
        router: Some(RouterId::stored("router")),
        frozen: Some(Frozen { by: Some(user_id()), at: NOW }),
        project_root: Some("/w".into()),
        ..room()
    }
}

pub fn members() -> Vec<Member> {
    let user = Member {
        room: room_id(),
        member: MemberId::User(user_id()),
        role: RoomRole::Owner,
        role_description: Some("cook".into()),
        name: "Ann".into(),
        handle: "ann".into(),
        joined_at: NOW,
        read_through: Seq(3),
        read_at: Some(NOW),
        room_preferences: RoomPreferences {
            pinned_at: Some(NOW),
            archived_at: Some(NOW),
            cleared_at: None,
            cleared_through: Seq(0),
            notifications: Notifications::Mentions,
        },
    };
    let agent = Member {
        member: MemberId::Agent(agent_id()),
        role: RoomRole::Member,
        role_description: None,
        name: "Coder".into(),
        handle: "team/coder".into(),
        read_at: None,
        room_preferences: RoomPreferences::default(),
        ..user.clone()
    };
    vec![user, agent]
}

pub fn task() -> Task {
    Task {
        id: TaskId::stored("k"),
        room: room_id(),
        title: "Cook".into(),
        description: None,
        status: TaskStatus::Pending,
        priority: TaskPriority::Medium,
        result: None,
        due_at: None,
        assignee: None,
        parent: None,
        created_by: MemberId::User(user_id()),
        created_at: NOW,
        updated_at: NOW,
    }
}

/// A task with every optional field.
pub fn full_task() -> Task {
    Task {
        description: Some("Soup".into()),
        status: TaskStatus::InputRequired,
        result: Some("hot".into()),
        due_at: Some(NOW),
        priority: TaskPriority::Urgent,
        assignee: Some(MemberId::Agent(agent_id())),
        parent: Some(TaskId::stored("k")),
        ..task()
    }
}

pub fn agent() -> Agent {
    Agent {
        id: agent_id(),
        owner: user_id(),
        name: "Coder".into(),
        description: "Writes code".into(),
        settings: [
            ("defaultModel".into(), Payload(r#""opus""#.into())),
            ("heartbeat".into(), Payload("1.50".into())),
            ("id".into(), Payload(r#""forged""#.into())),
        ]
        .into(),
        host: AgentHost {
            kind: "acp:codex".into(),
            capabilities: vec!["code".into()],
            ..AgentHost::default()
        },
        visibility: Visibility::Private,
        created_at: NOW,
    }
}

pub fn run(state: RunState) -> Run {
    Run {
        id: run_id(),
        agent: agent_id(),
        place: RunPlace::Room(room_id()),
        cause: RunCause::Message(message_id()),
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), agent_id()),
        parent: None,
        state,
        reply: None,
        usage: Usage { input_tokens: 3, output_tokens: 4, cost: Some(5) },
        stop_requested: false,
        queued_at: Time(NOW.0 - 2_000_000),
        started_at: Some(Time(NOW.0 - 1_234_567)),
        ended_at: Some(NOW),
    }
}

pub fn questions() -> Vec<Question> {
    let choice = |label: &str, full: bool| Choice {
        label: label.into(),
        description: full.then(|| "d".into()),
        preview: full.then(|| "p".into()),
    };
    vec![Question {
        text: "Which?".into(),
        header: "Tea".into(),
        options: vec![choice("a", true), choice("b", false)],
        several: true,
    }]
}

pub fn approval(decision: Option<Decision>) -> Approval {
    Approval {
        id: ApprovalId::stored("p"),
        run: run_id(),
        place: RunPlace::Room(room_id()),
        agent: agent_id(),
        agent_name: "Coder".into(),
        gateway: GatewayId::stored("g"),
        request: "theirs".into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload(r#"{"b":1.50, "a":null}"#.into())),
        digest: InputDigest([10; 32]),
        asked_at: NOW,
        expires_at: Time(NOW.0 + 60_000_000),
        decision,
        decided_at: None,
    }
}

pub fn question_set(decision: Option<Decision>) -> Approval {
    Approval { subject: ApprovalSubject::Questions(questions()), ..approval(decision) }
}

/// Every decision.
pub fn decisions() -> Vec<Decision> {
    let by = Decider { user: user_id(), name: "Ann".into() };
    let answers = vec![
        QuestionAnswer { question: 0, selected: vec!["a".into()], text: None },
        QuestionAnswer { question: 1, selected: Vec::new(), text: Some("both".into()) },
    ];
    vec![
        Decision::Allowed { by: by.clone() },
        Decision::AllowedByRule,
        Decision::Denied { by: by.clone(), reason: Some("no".into()) },
        Decision::Denied { by: by.clone(), reason: None },
        Decision::Answered { by, answers },
        Decision::Expired,
        Decision::Withdrawn,
    ]
}

pub fn plan() -> Plan {
    let step = |description: Option<&str>, state| PlanStep {
        title: "step".into(),
        description: description.map(Into::into),
        state,
    };
    Plan {
        summary: "s".into(),
        state: PlanState::Executing,
        steps: vec![step(Some("d"), StepState::InProgress), step(None, StepState::Done)],
        text: None,
    }
}

fn current_plan(text: Option<&str>) -> CurrentPlan {
    CurrentPlan {
        room: room_id(),
        agent: agent_id(),
        run: run_id(),
        plan: plan(),
        text: text.map(Into::into),
        rev: 2,
        at: NOW,
    }
}

fn user() -> User {
    User {
        id: user_id(),
        username: "ann".into(),
        display_name: "Ann".into(),
        role: SiteRole::User,
        avatar_url: None,
        password_hash: "secret".into(),
        second_factor: false,
        failed_sign_ins: 0,
        locked_until: None,
        max_connections: None,
        source_patterns: Vec::new(),
        agent_tokens_valid_from: Time(0),
        created_at: NOW,
        updated_at: NOW,
    }
}

/// Every event, with its optional fields set and absent.
pub fn events() -> Vec<Event> {
    let (room_id, message_id, user_id) = (room_id(), message_id(), user_id());
    let posted = |message| Event::MessagePosted { message: Arc::new(message), deliveries: Arc::new([]) };
    let members: Arc<[Member]> = members().into();
    let changed = |change, members: &Arc<[Member]>| Event::MembersChanged {
        room: Arc::new(room()),
        change,
        members: members.clone(),
    };
    let member = || members[0].member.clone();
    let audience = Arc::new(EventAudience::everyone());
    let bookmark = |kept| Event::BookmarkChanged {
        room: room_id.clone(),
        user: user_id.clone(),
        message: message_id.clone(),
        kept,
    };
    let ended = |outcome| Event::RunChanged(Arc::new(run(RunState::Ended(outcome))));
    let refused = Run {
        started_at: None,
        cause: RunCause::Unprompted,
        ..run(RunState::Ended(RunOutcome::Refused("frozen".into())))
    };
    let joined = Run {
        parent: Some(RunId::stored("parent")),
        usage: Usage::default(),
        ..run(RunState::Ended(RunOutcome::Complete))
    };
    let mut events = vec![
        posted(message()),
        posted(full_message()),
        posted(reply()),
        posted(idle_prompt()),
        posted(routed()),
        Event::MessageEdited(Arc::new(full_message())),
        Event::MessageEdited(Arc::new(reply())),
        Event::MessageDeleted { room: room_id.clone(), message: message_id.clone() },
        Event::ReactionsChanged {
            room: room_id.clone(),
            message: message_id.clone(),
            reactions: reactions().into(),
        },
        Event::MessagePinned(Pin {
            room: room_id.clone(),
            message: message_id.clone(),
            by: user_id.clone(),
            seq: Seq(7),
            at: NOW,
        }),
        Event::MessageUnpinned { room: room_id.clone(), message: message_id.clone() },
        bookmark(true),
        bookmark(false),
        Event::RoomChanged(Arc::new(room())),
        Event::RoomChanged(Arc::new(full_room())),
        Event::RoomRemoved { room: room_id.clone(), people: Arc::new([]) },
        changed(MemberChange::Added(member()), &members),
        changed(MemberChange::Changed(member()), &members),
        changed(MemberChange::Removed(MemberId::Agent(agent_id())), &Arc::from([])),
        Event::RoomRead { room: room_id.clone(), user: user_id.clone(), username: "ann".into(), at: NOW },
        Event::RoomPreferencesChanged(Arc::new(members[0].clone())),
        Event::RoomPreferencesChanged(Arc::new(members[1].clone())),
        Event::RoomCleared { room: room_id.clone(), user: user_id.clone(), at: NOW },
        Event::TaskChanged(Arc::new(task())),
        Event::TaskChanged(Arc::new(full_task())),
        Event::TaskRemoved { room: room_id, task: TaskId::stored("k") },
        Event::AgentChanged { agent: Arc::new(agent()), audience: audience.clone() },
        Event::AgentRemoved { agent: agent_id(), audience },
        Event::UserChanged { user: Arc::new(user()), audience: Arc::new(EventAudience::everyone()) },
        Event::SignInsEnded(user_id.clone()),
        Event::SignInEnded { user: user_id.clone(), sign_in: SignInId::stored("s") },
        Event::KeyRevoked { user: user_id.clone(), key: KeyId::stored("k") },
        Event::TokensRevoked { user: user_id.clone(), key: KeyId::stored("k") },
        Event::UserRemoved(user_id),
        Event::SettingsChanged,
        Event::MailResent { message: Arc::new(routed()), mailbox: None, deliveries: Arc::new([]) },
        Event::RunChanged(Arc::new(run(RunState::Running))),
        ended(RunOutcome::Complete),
        ended(RunOutcome::Failed("broken".into())),
        ended(RunOutcome::Cancelled),
        ended(RunOutcome::Interrupted),
        Event::RunChanged(Arc::new(refused)),
        Event::RunChanged(Arc::new(joined)),
        Event::PlanChanged(Arc::new(current_plan(None))),
        Event::PlanChanged(Arc::new(current_plan(Some("edited")))),
        Event::ApprovalAsked(Arc::new(approval(None))),
        Event::ApprovalAsked(Arc::new(question_set(None))),
        Event::Tombstone,
    ];
    for decision in decisions() {
        events.push(Event::ApprovalDecided(Arc::new(approval(Some(decision.clone())))));
        events.push(Event::ApprovalDecided(Arc::new(question_set(Some(decision)))));
    }
    events
}

/// Every run event, with its optional fields set and absent.
pub fn run_events() -> Vec<RunEvent> {
    let context = |full: bool| ContextUsage {
        stage: "pre".into(),
        messages: 1,
        characters: 2,
        estimated_tokens: 3,
        token_limit: full.then_some(4),
        prompt_tokens: full.then_some(5),
        completion_tokens: full.then_some(6),
        compressed: full,
        summaries: 7,
    };
    let spent = Some(Usage { input_tokens: 8, output_tokens: 9, cost: Some(10) });
    let usage = |spent, context| RunEvent::Usage(UsageReport { spent, context });
    let subagent = |parent: Option<&str>, change| {
        RunEvent::Subagent(Subagent { id: "s".into(), parent: parent.map(Into::into), change })
    };
    let returned =
        |outcome, result: Option<&str>| SubagentChange::Returned { outcome, result: result.map(Into::into) };
    let file = |diff: Option<&str>| ChangedFile {
        path: "a.rs".into(),
        summary: "Modified".into(),
        diff: diff.map(Into::into),
    };
    vec![
        RunEvent::Plan(plan()),
        RunEvent::Questions(Questions { id: "q".into(), questions: questions() }),
        usage(spent, None),
        usage(None, Some(context(false))),
        usage(spent, Some(context(true))),
        subagent(None, SubagentChange::Spawned { task: "look".into() }),
        subagent(Some("p"), SubagentChange::Spawned { task: "look".into() }),
        subagent(None, returned(SubagentOutcome::Complete, Some("done"))),
        subagent(Some("p"), returned(SubagentOutcome::Failed, None)),
        subagent(None, returned(SubagentOutcome::Cancelled, None)),
        RunEvent::Changes(ChangeReport { files: vec![file(Some("+x")), file(None)], left_out: 9 }),
        RunEvent::ToolProgress { tool: "Bash".into(), line: "ok".into(), stream: Stream::Stderr },
        RunEvent::ModelFallback { preferred: "a".into(), actual: "b".into(), reason: "busy".into() },
        RunEvent::Task { title: "t".into(), description: Some("d".into()), assignee: Some("ann".into()) },
        RunEvent::Task { title: "t".into(), description: None, assignee: None },
        RunEvent::Status { activity: Activity::Idle, detail: None, subagent: None },
        RunEvent::Status {
            activity: Activity::CallingTool,
            detail: Some("a.rs".into()),
            subagent: Some("s".into()),
        },
    ]
}

/// Every signal, with its optional fields set and absent.
pub fn signals() -> Vec<Signal> {
    let (room, agent) = (room_id(), agent_id());
    let chunk = |kind, metadata, first| Signal::Chunk {
        place: RunPlace::Room(room_id()),
        agent: agent.clone(),
        agent_name: "Coder".into(),
        message: message_id(),
        chunk: chunk(kind, metadata),
        first,
    };
    let status = |kind: &str, model: Option<&str>, status| Signal::AgentStatus {
        agent: agent.clone(),
        name: "Coder".into(),
        kind: kind.into(),
        model: model.map(Into::into),
        status,
        queue_depth: 2,
    };
    let activity = |activity, detail: Option<&str>, subagent: Option<&str>, done| Signal::Activity {
        run: run_id(),
        place: RunPlace::Room(room_id()),
        agent: agent.clone(),
        activity,
        detail: detail.map(Into::into),
        subagent: subagent.map(Into::into),
        began: Ordinal(42),
        rev: 3,
        done,
    };
    let item = |message| QueuedMessage { run: run_id(), message, preview: "hi".into(), at: NOW };
    let queue = |items: Vec<QueuedMessage>| Signal::Queue {
        room: room.clone(),
        agent: agent.clone(),
        items: items.into(),
        rev: 4,
    };
    let tool = Some(r#"{"toolName":"Bash","toolId":"t1","isError":true,"x":null,"n":1.50}"#);
    let mut signals = vec![
        Signal::Typing { room: room.clone(), user: user_id(), username: "ann".into() },
        Signal::Presence { user: user_id(), username: "ann".into(), online: true },
        status("acp:claude", None, AgentStatus::Busy),
        status("my-own", Some("opus"), AgentStatus::Offline),
        chunk(ChunkKind::Text, None, true),
        chunk(ChunkKind::Text, None, false),
        chunk(ChunkKind::Thinking, None, true),
        chunk(ChunkKind::ToolUse, tool, false),
        chunk(ChunkKind::ToolUse, None, false),
        chunk(ChunkKind::ToolResult, tool, false),
        chunk(ChunkKind::ToolResult, None, false),
        chunk(ChunkKind::Error, None, false),
        chunk(ChunkKind::WorkspaceStatus, tool, false),
        Signal::Terminal {
            room: room.clone(),
            agent: agent.clone(),
            agent_name: "Coder".into(),
            data: "$ ls\n".into(),
        },
        activity(Activity::Thinking, None, None, false),
        activity(Activity::ModelLoading, None, None, false),
        activity(Activity::CallingTool, Some("a.rs"), Some("s"), false),
        activity(Activity::Working, None, None, true),
        queue(Vec::new()),
        queue(vec![item(Some(message_id()))]),
        queue(vec![item(Some(message_id())), item(None)]),
        Signal::Refresh,
        Signal::Rewound {
            room: room.clone(),
            message: message_id(),
            removed: vec![message_id(), MessageId::stored("n")],
            text: "hi".into(),
        },
    ];
    signals.extend(run_events().into_iter().map(|event| Signal::RunEvent {
        run: run_id(),
        place: RunPlace::Room(room_id()),
        agent: agent.clone(),
        event: Arc::new(event),
        rev: 5,
    }));
    signals.extend(answers());
    signals
}

/// Answers of each kind to the request of a user.
fn answers() -> impl Iterator<Item = Signal> {
    let gateway = Answerer::Gateway(GatewayId::stored("g"));
    let agent = Answerer::Agent {
        agent: agent_id(),
        name: "Coder".into(),
        kind: "my-own".into(),
        status: AgentStatus::Online,
    };
    let status = r#"{"type":"gateway:workspace_response","requestId":"1","response":{"kind":"status","data":null,"x":null}}"#;
    let info = r#"{"type":"gateway:agent_info","agentId":"b","id":"b","name":"Admin","status":"x","model":null,"slashCommands":[]}"#;
    let other = r#"{"requestId":"1","type":"gateway:x","success":true,"n":1.50,"error":null,"l":[null,{"x":null}],"agentId":"b"}"#;
    let answered = [
        (AnswerKind::AgentInfo, agent.clone(), info),
        (AnswerKind::AgentCommand, agent.clone(), other),
        (AnswerKind::Workspace, agent, status),
        (AnswerKind::Spawn, gateway.clone(), other),
        (AnswerKind::CredentialList, gateway.clone(), other),
        (AnswerKind::Credential, gateway.clone(), other),
        (AnswerKind::OauthUrl, gateway.clone(), other),
        (AnswerKind::Oauth, gateway.clone(), other),
        (AnswerKind::Rewind, gateway, other),
    ];
    answered.into_iter().map(|(kind, by, body)| {
        Signal::Answered(Box::new(InquiryAnswer { kind, by, body: Payload(body.into()) }))
    })
}
