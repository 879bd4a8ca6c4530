//! Frames of `/ws/broker`, in both directions.

use crate::check;
use crate::samples::{
    AT, EPOCH, NOW, agent, agent_id, events, full_message, logged, members, message, message_id, reply,
    room_id, routed,
};
use parlor_model::command::{AgentWithSubscriptions, Posted};
use parlor_model::query::FoundAgent;
use parlor_model::*;
use parlor_wire::broker::egress::{self, BrokerAnswer, BrokerReceipt};
use parlor_wire::broker::ingress::{self, EchoedFields, NotJson, RequestFrame, RoomRequest};
use parlor_wire::broker::{client, rooms};
use parlor_wire::json::JsonLimits;
use std::sync::Arc;

const REQ_ID: Option<&str> = Some("{\"n\":1.50}");

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
    let session = |id: &str| Session {
        agent: agent_id(),
        id: SessionId::stored(id),
        title: "Main".into(),
        created_at: NOW,
    };
    let own = |agent: Agent| {
        let (subscriptions, sessions) = (subscriptions(), vec![session("main"), session("other")]);
        BrokerAnswer::Agent(FoundAgent::Own { agent: Arc::new(agent), subscriptions, sessions })
    };
    let letter =
        |mailbox| DeadLetter { message: Arc::new(routed()), reason: "no subscriber".into(), mailbox };
    let receipt =
        |kind, about: &EchoedFields, receipt: &BrokerReceipt| egress::receipt(kind, REQ_ID, about, receipt);
    let answer =
        |kind, about: &EchoedFields, answer: &BrokerAnswer| egress::answer(kind, None, about, answer);
    let both = || vec![delivery(None, false), delivery(Some("main"), false)];
    let mut frames = vec![
        egress::plain("pong", None),
        egress::plain("auth.ok", REQ_ID),
        egress::error("error", None, "Invalid JSON"),
        egress::error("auth.error", REQ_ID, "No \"token\""),
        egress::refusal("msg.route", REQ_ID, &echoed, &Refusal::Forbidden),
        egress::push(&routed(), &delivery(None, false)),
        egress::push(&full_message(), &delivery(None, true)),
        egress::push(&reply(), &delivery(Some("main"), true)),
        egress::listening("msg.listen", None, &echoed),
        egress::listening("msg.session.listen", REQ_ID, &nothing),
        receipt("msg.route", &nothing, &posted(Some(routed()), both())),
        receipt("msg.relay", &nothing, &posted(Some(full_message()), Vec::new())),
        receipt("msg.route", &nothing, &posted(None, Vec::new())),
        receipt("msg.send", &nothing, &posted(Some(routed()), both())),
        receipt("msg.broadcast", &nothing, &posted(None, both())),
        receipt("msg.receive", &echoed, &BrokerReceipt::Received(mail())),
        receipt("msg.receive", &nothing, &BrokerReceipt::Received(Vec::new())),
        receipt("msg.ack", &echoed, &BrokerReceipt::Acknowledged(3)),
        receipt("msg.sub.add", &echoed, &BrokerReceipt::Subscriptions(subscriptions())),
        receipt("msg.unmatched.clear", &nothing, &BrokerReceipt::DeadLettersCleared),
        receipt(
            "agent.create",
            &echoed,
            &BrokerReceipt::Agent(AgentWithSubscriptions {
                agent: Arc::new(agent()),
                subscriptions: subscriptions(),
            }),
        ),
        receipt("agent.delete", &echoed, &BrokerReceipt::AgentRemoved),
        receipt("agent.delete", &nothing, &BrokerReceipt::AgentRemoved),
        answer("agent.list", &nothing, &BrokerAnswer::Agents(vec![agent(), other.clone()])),
        answer("agent.get", &echoed, &BrokerAnswer::Agent(FoundAgent::OfAnother(Arc::new(agent())))),
        answer("agent.get", &echoed, &own(agent())),
        answer("agent.get", &echoed, &own(other)),
        answer("agent.get", &echoed, &own(with_auto_run)),
        answer("msg.sub.list", &echoed, &BrokerAnswer::Subscriptions(subscriptions())),
        answer("msg.history", &echoed, &BrokerAnswer::Mail(mail())),
        answer(
            "msg.unmatched",
            &nothing,
            &BrokerAnswer::DeadLetters(vec![letter(None), letter(Some(mailbox(Some("main"))))]),
        ),
        rooms::lost(&room_id()),
        rooms::changed(&room_id()),
        rooms::listening(&room_id(), AT, &members(), REQ_ID),
        rooms::members(&room_id(), &members(), None),
        rooms::history(&room_id(), &[Arc::new(message()), Arc::new(full_message())], EPOCH, REQ_ID),
        rooms::error_type(&RoomRequest::Listen).to_owned(),
        rooms::error_type(&RoomRequest::Members).to_owned(),
        rooms::error_type(&RoomRequest::History { after: None, limit: 1 }).to_owned(),
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
        Ok(RequestFrame { req_id, about, asked, .. }) => {
            let about = [about.agent, about.session, about.pattern];
            let about = if asked.is_ok() { format!("{about:?}") } else { String::new() };
            format!("{text}\n  {req_id:?} {about} {asked:?}")
        }
        Err(NotJson) => format!("{text}\n  NotJson"),
    });
    check("broker-understood.txt", &understood.collect::<Vec<_>>());
}
