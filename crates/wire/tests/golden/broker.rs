//! Frames of `/ws/broker`, in both directions.

use crate::check;
use crate::samples::{
    AT, EPOCH, NOW, agent, agent_id, events, full_message, logged, members, message, message_id, reply,
    room_id, routed,
};
use parlor_model::command::{AgentWithSubscriptions, BatchReceipt, Posted};
use parlor_model::query::FoundAgent;
use parlor_model::*;
use parlor_wire::broker::egress::{self, BrokerAnswer, BrokerReceipt};
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
        BrokerAnswer::Agent(FoundAgent::Own { agent: Arc::new(agent), subscriptions, sessions })
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
        answer(Type::AgentList, &nothing, &BrokerAnswer::Agents(vec![agent(), other.clone()])),
        answer(Type::AgentGet, &echoed, &BrokerAnswer::Agent(FoundAgent::OfAnother(Arc::new(agent())))),
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
    check("broker-server.jsonl", &frames);
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
