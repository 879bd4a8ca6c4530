//! Frames of `/ws/broker`, in both directions.

use crate::check;
use crate::samples::{
    AT, EPOCH, NOW, agent, agent_id, events, full_message, logged, members, message, message_id, reply,
    room_id, routed,
};
use parlor_model::command::{AgentWithSubscriptions, BatchReceipt, Posted};
use parlor_model::query::FoundAgent;
use parlor_model::*;
use parlor_wire::broker::egress::{self, AgentFolder, AgentState, BrokerAnswer, BrokerReceipt};
use parlor_wire::broker::egress::{questions, sessions, tools};
use parlor_wire::broker::frames::{HubFrame, ProgramFrame, RequestType as Type};
use parlor_wire::broker::ingress::{self, EchoedFields, NotJson, ReceivedFrame, RequestFrame};
use parlor_wire::broker::{client, rooms};
use parlor_wire::json::JsonLimits;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

fn req_id() -> Option<&'static RawValue> {
    serde_json::from_str("{\"n\":1.50}").unwrap()
}

fn mailbox(session: Option<&str>) -> Mailbox {
    Mailbox { agent: agent_id(), session: session.map(SessionId::stored) }
}

fn delivery(session: Option<&str>, handled: bool) -> Delivery {
    let handler = SessionRef { agent: agent_id(), session: SessionId::stored("main") };
    Delivery {
        message: message_id(),
        mailbox: mailbox(session),
        state: if handled { DeliveryState::Leased { until: NOW } } else { DeliveryState::Pending },
        attempts: if handled { 2 } else { 0 },
        handled_by: if handled { vec![handler] } else { Vec::new() },
    }
}

fn posted(message: Option<Message>, deliveries: Vec<Delivery>) -> BrokerReceipt {
    let message = message.map(Arc::new);
    let deliveries = deliveries.into();
    BrokerReceipt::Posted(Posted { id: message_id(), position: AT, message, deliveries, repeated: false })
}

fn subscriptions() -> Vec<Subscription> {
    vec![Subscription {
        agent: agent_id(),
        session: None,
        pattern: Pattern::parse("slack/**").unwrap(),
        added_at: NOW,
    }]
}

#[test]
fn frames_to_programs_have_the_same_bytes() {
    let echoed = EchoedFields {
        agent: Some("team/coder".into()),
        session: Some("main".into()),
        pattern: Some("slack/**".into()),
        subject: None,
    };
    let nothing = EchoedFields::default();
    let mail = || {
        vec![(Arc::new(routed()), delivery(None, true)), (Arc::new(message()), delivery(Some("main"), false))]
    };
    let other = Agent { settings: Default::default(), ..agent() };
    let with_auto_run = Agent { settings: [("autoRun".into(), Payload("true".into()))].into(), ..agent() };
    let session = |id: &str| Session::new(agent_id(), SessionId::stored(id), "Main", NOW);
    let used = || Session {
        last_used_at: Some(NOW.plus(Duration::from_secs(1))),
        auto_run: Some(AutoRun { max_batch: 5, ..AutoRun::of(true) }),
        room: Some(RoomId::stored("lobby")),
        settings: [("color".into(), Payload("\"red\"".into()))].into(),
        ..session("other")
    };
    let own = |agent: Agent| {
        let (subscriptions, sessions) =
            (subscriptions(), vec![(session("main"), Vec::new()), (used(), subscriptions())]);
        let found = FoundAgent::Own { agent: Arc::new(agent), subscriptions, sessions };
        BrokerAnswer::Agent { found, folder: AgentFolder::default() }
    };
    let of_another = || {
        let found = FoundAgent::OfAnother(Arc::new(agent()));
        BrokerAnswer::Agent { found, folder: AgentFolder::default() }
    };
    let folder =
        |is_missing| AgentFolder { path: Some("team/coder".into()), has_claude_md: true, is_missing };
    let in_folder = || match own(agent()) {
        BrokerAnswer::Agent { found, .. } => BrokerAnswer::Agent { found, folder: folder(true) },
        other => other,
    };
    let idle = |agent| AgentState { agent, folder: AgentFolder::default(), active: Vec::new() };
    let working = |agent| AgentState {
        agent,
        folder: folder(false),
        active: vec![SessionId::main(), SessionId::stored("other")],
    };
    let letter =
        |mailbox| DeadLetter { message: Arc::new(routed()), reason: "no subscriber".into(), mailbox };
    let receipt =
        |kind, about: &EchoedFields, receipt: &BrokerReceipt| egress::receipt(kind, req_id(), about, receipt);
    let answer =
        |kind, about: &EchoedFields, answer: &BrokerAnswer| egress::answer(kind, None, about, answer);
    let both = || vec![delivery(None, false), delivery(Some("main"), false)];
    let mut frames = vec![
        egress::pong(None),
        egress::authenticated(req_id()),
        egress::failure(None, "Invalid JSON"),
        egress::error(Type::Auth, req_id(), "No \"token\""),
        egress::refusal(Type::Route, req_id(), &echoed, &Refusal::Forbidden),
        egress::push(&routed(), &delivery(None, false)),
        egress::push(&full_message(), &delivery(None, true)),
        egress::push(&reply(), &delivery(Some("main"), true)),
        egress::listening(Type::Listen, None, &echoed),
        egress::listening(Type::SessionListen, req_id(), &nothing),
        receipt(Type::Route, &nothing, &posted(Some(routed()), both())),
        receipt(Type::Relay, &nothing, &posted(Some(full_message()), Vec::new())),
        receipt(Type::Route, &nothing, &posted(None, Vec::new())),
        receipt(Type::Send, &nothing, &posted(Some(routed()), both())),
        receipt(Type::Broadcast, &nothing, &posted(None, both())),
        receipt(Type::Receive, &echoed, &BrokerReceipt::Received(mail())),
        receipt(Type::Receive, &nothing, &BrokerReceipt::Received(Vec::new())),
        receipt(Type::Ack, &echoed, &BrokerReceipt::Acknowledged(3)),
        receipt(Type::TurnTrigger, &echoed, &BrokerReceipt::Turn(triggered())),
        receipt(Type::SubAdd, &echoed, &BrokerReceipt::Subscriptions(subscriptions())),
        receipt(Type::UnmatchedClear, &nothing, &BrokerReceipt::DeadLettersCleared),
        receipt(
            Type::AgentCreate,
            &echoed,
            &BrokerReceipt::Agent(AgentWithSubscriptions {
                agent: Arc::new(agent()),
                subscriptions: subscriptions(),
            }),
        ),
        receipt(Type::AgentDelete, &echoed, &BrokerReceipt::AgentRemoved),
        receipt(Type::AgentDelete, &nothing, &BrokerReceipt::AgentRemoved),
        answer(Type::AgentList, &nothing, &BrokerAnswer::Agents(vec![working(agent()), idle(other.clone())])),
        answer(Type::AgentGet, &echoed, &of_another()),
        answer(Type::AgentGet, &echoed, &in_folder()),
        answer(Type::AgentGet, &echoed, &own(agent())),
        answer(Type::AgentGet, &echoed, &own(other)),
        answer(Type::AgentGet, &echoed, &own(with_auto_run)),
        answer(Type::SubList, &echoed, &BrokerAnswer::Subscriptions(subscriptions())),
        answer(Type::History, &echoed, &BrokerAnswer::Mail(mail())),
        answer(
            Type::Unmatched,
            &nothing,
            &BrokerAnswer::DeadLetters(vec![letter(None), letter(Some(mailbox(Some("main"))))]),
        ),
        egress::error(Type::RoomListen, None, "No"),
        egress::error(Type::RoomMembers, None, "No"),
        egress::error(Type::RoomHistory, None, "No"),
        rooms::lost(&room_id()),
        rooms::changed(&room_id()),
        rooms::listening(&room_id(), AT, &members(), req_id()),
        rooms::members(&room_id(), &members(), None),
        rooms::history(&room_id(), &[Arc::new(message()), Arc::new(full_message())], EPOCH, req_id()),
    ];
    frames.extend(events().into_iter().filter_map(|event| rooms::event(&logged(event), EPOCH)));
    frames.extend(session_answers());
    frames.extend(session_pushes());
    check("broker-server.jsonl", &frames);
}

/// Time at which the hub answers, 4 s after the start of the runs.
const LATER: Time = Time(NOW.0 + 4_000_000);

fn session_run(session: &str, state: RunState) -> Run {
    let prompt = "Say \"hello\"\nto everybody".into();
    let ended_at = matches!(state, RunState::Ended(_)).then_some(LATER);
    Run {
        id: RunId::stored("run"),
        agent: agent_id(),
        place: RunPlace::Session {
            session: SessionId::stored(session),
            room: None,
            owner: UserId::stored("ann"),
        },
        cause: RunCause::Explicit { prompt, by: UserId::stored("ann") },
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), agent_id()),
        parent: None,
        started_at: (state != RunState::Queued).then_some(NOW),
        state,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: NOW,
        ended_at,
    }
}

fn entry(number: u64, kind: EntryKind, details: Option<&str>) -> ConversationEntry {
    ConversationEntry {
        agent: agent_id(),
        session: SessionId::main(),
        number,
        at: NOW,
        kind,
        text: "hello".into(),
        run: None,
        details: details.map(|details| Payload(details.into())),
    }
}

/// Answers about sessions, instructions, tools and questions.
fn session_answers() -> Vec<String> {
    let about = EchoedFields {
        agent: Some("team/coder".into()),
        session: Some("main".into()),
        ..EchoedFields::default()
    };
    let used = Session {
        last_used_at: Some(LATER),
        room: Some(RoomId::stored("lobby")),
        ..Session::new(agent_id(), SessionId::stored("other"), "Other", NOW)
    };
    let main = Session::new(agent_id(), SessionId::main(), "Main conversation", NOW);
    let listed = [(main, Vec::new()), (used, subscriptions())];
    let runs = [session_run("other", RunState::Running), session_run("queued", RunState::Queued)];
    let entries =
        [entry(1, EntryKind::Prompt, None), entry(2, EntryKind::Result, Some(r#"{"durationMs":61}"#))];
    let description = |timeout| ToolDescription {
        name: "send-message".into(),
        description: "Sends a message.".into(),
        schema: Payload(r#"{"type":"object", "n":1.50}"#.into()),
        timeout,
    };
    let result = |outcome| ToolResult { tool: "send-message".into(), at: NOW, outcome };
    let failure = |code| ToolFailure::new(code, "It failed.");
    let detailed = failure(ToolFailureCode::Failed).with_details("stderr");
    let (agent, session) = (agent_id(), SessionId::main());
    let executed = |outcome, req_id| tools::executed(&agent, "send-message", &result(outcome), req_id);
    vec![
        sessions::sessions(&listed, &runs, LATER, req_id()),
        sessions::sessions(&[], &[], LATER, None),
        sessions::started(Type::SessionStart, &agent, &session, req_id()),
        sessions::started(Type::SessionContinue, &agent, &session, None),
        sessions::started(Type::SessionAbort, &agent, &session, req_id()),
        sessions::refused(Type::SessionStart, Some("main"), req_id(), "Session ID already active"),
        sessions::refused(Type::SessionList, None, None, "No"),
        sessions::refused(Type::SessionAbort, None, req_id(), "No active session: main"),
        sessions::active(None, &runs, LATER, req_id()),
        sessions::active(Some(&agent), &[], LATER, None),
        sessions::conversation(&about, &entries, req_id()),
        sessions::matches(&entries, req_id()),
        sessions::matches(&[], None),
        sessions::conversations(&listed, req_id()),
        tools::instructions(&agent, "# Coder\n", req_id()),
        tools::instructions_stored(&agent, None),
        egress::error(Type::InstructionsGet, None, "This hub has no agents root"),
        tools::tools(&agent, &[description(None), description(Some(Duration::from_secs(60)))], req_id()),
        tools::tools_refreshed(None),
        executed(Ok(Payload(r#"{"n":1.50}"#.into())), req_id()),
        executed(Err(failure(ToolFailureCode::Busy)), None),
        executed(Err(detailed), None),
        egress::error(Type::ToolExecute, req_id(), "Tool not found: ghost (agent: team/coder)"),
        tools::rebuilt(req_id()),
        questions::answered("q", req_id()),
        egress::error(Type::AskUserResponse, None, "This question was answered already"),
    ]
}

/// Pushes about runs in sessions.
fn session_pushes() -> Vec<String> {
    let ended = |outcome| RunState::Ended(outcome);
    let states = [
        RunState::Queued,
        RunState::Running,
        ended(RunOutcome::Complete),
        ended(RunOutcome::Failed("it \"broke\"".into())),
        ended(RunOutcome::Cancelled),
        ended(RunOutcome::Interrupted),
        ended(RunOutcome::Refused("frozen".into())),
    ];
    let batch = |count| Run {
        cause: RunCause::Batch { messages: vec![message_id(); count], attempt: 1 },
        ..session_run("main", RunState::Running)
    };
    let in_room = Run { place: RunPlace::Room(room_id()), ..session_run("main", RunState::Running) };
    let runs = states.into_iter().map(|state| session_run("main", state));
    let runs = runs.chain([batch(1), batch(2), in_room]);
    let choice = |label: &str| run_event::Choice { label: label.into(), description: None, preview: None };
    let question = |text: &str, labels: &[&str]| run_event::Question {
        text: text.into(),
        header: "Deploy".into(),
        options: labels.iter().map(|label| choice(label)).collect(),
        several: labels.len() > 2,
    };
    let asked = |place: RunPlace, questions| {
        Event::ApprovalAsked(Arc::new(Approval {
            id: ApprovalId::stored("approval"),
            run: RunId::stored("run"),
            place,
            agent: agent_id(),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "AskUser".into(),
            subject: ApprovalSubject::Questions(questions),
            digest: InputDigest([0; 32]),
            asked_at: NOW,
            expires_at: LATER,
            decision: None,
            decided_at: None,
        }))
    };
    let place = || session_run("main", RunState::Running).place;
    let deploy = || question("Deploy?", &["yes", "no"]);
    let approvals = [
        asked(place(), vec![deploy()]),
        asked(place(), vec![question("Which name?", &[])]),
        asked(place(), vec![deploy(), question("Where?", &["a", "b", "c"])]),
        asked(RunPlace::Room(room_id()), vec![deploy()]),
    ];
    let chunk = |kind, content: &str, metadata: Option<&str>| Signal::Chunk {
        place: place(),
        agent: agent_id(),
        agent_name: "Coder".into(),
        message: message_id(),
        chunk: Chunk {
            kind,
            content: content.into(),
            metadata: metadata.map(|metadata| Payload(metadata.into())),
        },
        first: false,
    };
    let call = Some(r#"{"toolName":"Read","toolId":"t1"}"#);
    let event =
        RunEvent::ToolProgress { tool: "Bash".into(), line: "ok".into(), stream: run_event::Stream::Stdout };
    let active = |sessions: &[&str]| {
        let active = sessions.iter().map(|session| SessionId::stored(*session)).collect();
        Signal::AgentSessions(AgentSessions { agent: agent_id(), owner: UserId::stored("ann"), active })
    };
    let signals = [
        chunk(ChunkKind::Thinking, "hm", None),
        chunk(ChunkKind::Text, "Hello", None),
        chunk(ChunkKind::ToolUse, r#"{"file_path":"x", "n":1.50}"#, call),
        chunk(ChunkKind::ToolUse, "no JSON", None),
        chunk(ChunkKind::ToolResult, "ok", Some(r#"{"toolId":"t1","isError":true}"#)),
        chunk(ChunkKind::ToolResult, "ok", None),
        chunk(ChunkKind::Error, "broken", None),
        Signal::RunEvent {
            run: RunId::stored("run"),
            place: place(),
            agent: agent_id(),
            event: Arc::new(event),
            rev: 1,
        },
        Signal::SessionReply { place: place(), agent: agent_id(), text: "Hello".into() },
        active(&["main", "other"]),
        active(&[]),
    ];
    let events = runs.map(|run| Event::RunChanged(Arc::new(run))).chain(approvals);
    let events = events.flat_map(|event| sessions::event(&logged(event)));
    events.chain(signals.iter().filter_map(sessions::signal)).collect()
}

#[test]
fn a_report_of_usage_starts_and_ends_no_run_again() {
    for state in [RunState::Running, RunState::Ended(RunOutcome::Complete)] {
        let run = Run {
            usage: Usage { output_tokens: 2, ..Usage::default() },
            ..session_run("main", state.clone())
        };
        let at = Time(LATER.0 + 1);
        let event = LoggedEvent { at, ..logged(Event::RunChanged(Arc::new(run))) };
        assert!(sessions::event(&event).is_empty(), "{state:?}");
    }
}

#[test]
fn requests_of_the_bridge_have_the_same_bytes() {
    let observers = ["bob".to_owned()];
    let relay = client::Relay {
        room_id: "r",
        author: "coder",
        recipient: None,
        observers: &[],
        text: "a\nb",
        continues: None,
        source: "chatmd",
        external_id: "g:0",
    };
    let full = client::Relay {
        recipient: Some("ann"),
        observers: &observers,
        continues: Some("m"),
        ..relay.clone()
    };
    let frames = [
        client::auth("secret", 1),
        client::ping(),
        client::listen("r", 2),
        client::members("r", 3),
        client::history("r", None, 100, 4),
        client::history("r", Some(AT), 100, 5),
        client::relay(&relay, 6),
        client::relay(&full, 7),
    ];
    check("broker-client.jsonl", &frames);
}

/// Pins what the hub understands: the request, its `reqId` and the echoed fields, or the error message.
#[test]
fn requests_of_programs_are_understood_the_same() {
    let limits = JsonLimits { depth: 32, items: 1000 };
    let requests = include_str!("../fixtures/golden/broker-requests.jsonl");
    let understood = requests.lines().map(|text| match ingress::read(text, limits) {
        Ok(ReceivedFrame::Request(RequestFrame { req_id, about, asked, .. })) => {
            let req_id = req_id.as_deref().map(RawValue::get);
            let about = [about.agent, about.session, about.pattern];
            let about = if asked.is_ok() { format!("{about:?}") } else { String::new() };
            format!("{text}\n  {req_id:?} {about} {asked:?}")
        }
        Ok(ReceivedFrame::Unknown { req_id, .. }) => {
            let req_id = req_id.as_deref().map(RawValue::get);
            format!("{text}\n  {req_id:?} [None, None, None] Ok(Unknown)")
        }
        Err(NotJson) => format!("{text}\n  NotJson"),
    });
    check("broker-understood.txt", &understood.collect::<Vec<_>>());
}

fn kind(text: &str) -> &str {
    text.split('"').nth(3).unwrap()
}

#[test]
fn a_frame_of_the_hub_is_parsed_and_encoded_to_the_same_bytes() {
    let frames = include_str!("../fixtures/golden/broker-server.jsonl");
    for text in frames.lines() {
        let Ok(Some(frame)) = HubFrame::parse(kind(text), text) else { panic!("not a frame: {text}") };
        assert_eq!(serde_json::to_string(&frame).unwrap(), text);
    }
    assert!(matches!(HubFrame::parse("msg.unknown.ok", "{}"), Ok(None)));
}

#[test]
fn a_request_is_parsed_and_encoded_to_the_same_bytes() {
    let frames = include_str!("../fixtures/golden/broker-client.jsonl");
    for text in frames.lines() {
        let Ok(Some(frame)) = ProgramFrame::parse(kind(text), text) else { panic!("not a frame: {text}") };
        assert_eq!(serde_json::to_string(&frame).unwrap(), text);
    }
}

/// A bridge on another machine reads frames, and one inside the hub converts messages of the model.
#[test]
fn a_message_from_its_frame_equals_the_converted_message() {
    for message in [message(), full_message(), reply()] {
        let converted = client::RoomMessage::of(&message, EPOCH);
        let posted = logged(Event::MessagePosted { message: Arc::new(message), deliveries: Arc::new([]) });
        let frame = rooms::event(&posted, EPOCH).unwrap();
        let Some(client::HubFrame::Message(read)) = client::read(&frame) else {
            panic!("not a message: {frame}")
        };
        assert_eq!(*read, converted);
    }
}

fn triggered() -> BatchReceipt {
    BatchReceipt { run: Some(RunId::stored("run")), messages: 2, is_waiting: false }
}
