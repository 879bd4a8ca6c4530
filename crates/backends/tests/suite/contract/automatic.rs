//! Automatic turns: agents and sessions that have them, mail that runs hold, and decisions.

use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::WINDOWS;
use parlor_engine::changes::{AgentChange, Change, MailChange, TurnChange};
use parlor_model::{
    AgentId, AutoRun, Delivery, DeliveryState, Mailbox, NewTurnDecision, Payload, RunId, Sender, Session,
    SessionId, Time, TurnDecisionKind, TurnPage,
};
use std::sync::Arc;

pub fn decision(agent: &str, session: &str, kind: TurnDecisionKind, at: Time) -> NewTurnDecision {
    NewTurnDecision {
        at,
        agent: agent_id(agent),
        session: SessionId::stored(session),
        kind,
        reason: Some("because \"it\" is".into()),
        run: Some(RunId::stored("run")),
        attempt: 2,
        messages: vec![message_id("a"), message_id("b")],
    }
}

fn append(store: &mut Ports, decision: NewTurnDecision) {
    store.change(vec![Change::Turn(TurnChange::AppendDecision(Arc::new(decision)))]);
}

fn numbers(store: &Ports, agents: &[AgentId], page: TurnPage) -> Vec<u64> {
    let found = store.read(|store| store.turn_decisions(agents, &page));
    found.into_iter().map(|turn| turn.number).collect()
}

const ALL: TurnPage = TurnPage { limit: 9, before: None, session: None };

#[test]
fn agents_and_sessions_with_automatic_turns_are_found() {
    each(|store| {
        let with = |id: &str, name: &str, json: &str| {
            let settings = [(name.into(), Payload(json.into()))].into();
            let agent = parlor_model::Agent { settings, ..agent(id, "ann") };
            Change::Agent(AgentChange::PutAgent(Arc::new(agent)))
        };
        let on = |agent: &str, id: &str, auto_run: Option<AutoRun>| {
            let session = Session { auto_run, ..session(agent, id, 1) };
            Change::Mail(MailChange::PutSession(session))
        };
        store.change(vec![
            put_user("ann", 1),
            with("c", "heartbeat", r#""* * * * *""#),
            with("b", "autoRun", "true"),
            with("a", "other", r#""[\"autoRun\",true]""#),
            on("b", "z", Some(AutoRun::of(false))),
            on("b", "y", Some(AutoRun::of(true))),
            on("a", "main", None),
        ]);
        let agents: Vec<_> =
            store.read(|store| store.automatic_agents()).into_iter().map(|agent| agent.id).collect();
        assert_eq!(agents, [agent_id("b"), agent_id("c")]);
        let sessions = store.read(|store| store.automatic_sessions());
        assert_eq!(sessions.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), ["y", "z"]);
    });
}

#[test]
fn decisions_are_numbered_listed_newest_first_and_counted() {
    use TurnDecisionKind::{Debounced, Run};
    each(|store| {
        store.change(vec![put_user("ann", 1), put_agent("a", "ann"), put_agent("b", "ann")]);
        let (a, b) = (agent_id("a"), agent_id("b"));
        for (agent, session, kind) in
            [("a", "main", Debounced), ("b", "main", Run), ("a", "side", Run), ("a", "main", Debounced)]
        {
            append(store, decision(agent, session, kind, Time(5)));
        }
        let of_a = std::slice::from_ref(&a);
        assert_eq!(numbers(store, of_a, ALL), [4, 3, 1]);
        assert_eq!(numbers(store, &[a.clone(), b.clone()], TurnPage { before: Some(4), ..ALL }), [3, 2, 1]);
        assert_eq!(numbers(store, of_a, TurnPage { limit: 1, ..ALL }), [4]);
        let main = SessionId::main();
        assert_eq!(numbers(store, of_a, TurnPage { session: Some(main.clone()), ..ALL }), [4, 1]);
        let found = store.read(|store| store.turn_decisions(std::slice::from_ref(&b), &ALL));
        assert_eq!(found[0].decision, decision("b", "main", Run, Time(5)));
        assert_eq!(store.read(|store| store.turn_counts(of_a, None)), [(Debounced, 2), (Run, 1)]);
        assert_eq!(store.read(|store| store.turn_counts(of_a, Some(&main))), [(Debounced, 2)]);
        assert_eq!(store.read(|store| store.turn_counts(&[], None)), []);

        store.change(vec![Change::Agent(AgentChange::RemoveAgent(a.clone()))]);
        append(store, decision("b", "main", Run, Time(6)));
        assert_eq!(numbers(store, &[a, b], ALL), [5, 2], "an agent takes its decisions along");
    });
}

#[test]
fn old_decisions_are_deleted() {
    each(|store| {
        store.change(vec![put_user("ann", 1), put_agent("a", "ann")]);
        for at in [1, 2_000_000] {
            append(store, decision("a", "main", TurnDecisionKind::Held, Time(at)));
        }
        store.store.run_maintenance(Time(1_000_000).plus(WINDOWS.log)).unwrap();
        assert_eq!(numbers(store, &[agent_id("a")], ALL), [2]);
    });
}

#[test]
fn mail_that_a_run_holds_is_not_pending_until_it_is_released() {
    each(|store| {
        store.change(vec![put_user("ann", 1), put_agent("a", "ann")]);
        let mailbox = || mailbox("a", Some("main"));
        for id in ["1", "2", "3"] {
            let seq = store.next_seq();
            store.post(full_message(id, on_path("slack/team"), Sender::Source("bridge".into()), seq));
            let delivery = delivery(id, mailbox());
            store.change(vec![Change::Mail(MailChange::PutDelivery {
                delivery,
                seq: parlor_model::Seq(seq),
            })]);
        }
        let ids = |ids: &[&str]| ids.iter().copied().map(message_id).collect::<Vec<_>>();
        let DeliveryState::Leased { until } = DeliveryState::HELD else { unreachable!() };
        let hold = MailChange::Lease { mailbox: mailbox(), messages: ids(&["1", "3"]), until };
        store.change(vec![Change::Mail(hold)]);
        let held = |store: &Ports| {
            let held = store.read(|store| store.held(&mailbox()));
            held.into_iter().map(|copy| (copy.message.as_str().to_owned(), copy.attempts)).collect::<Vec<_>>()
        };
        let pending = |store: &Ports, now| {
            let pending = store.read(|store| store.pending(&mailbox(), Time(now), 9));
            pending.into_iter().map(|(message, _)| message.id.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(held(store), [("1".to_owned(), 1), ("3".to_owned(), 1)]);
        assert_eq!(pending(store, i64::MAX - 1), ["2"]);
        assert_eq!(store.read(|store| store.next_lease_end(&mailbox(), Time(0))), None);

        let release = |messages, from| MailChange::Release { mailbox: mailbox(), messages, from };
        store.change(vec![
            Change::Mail(release(ids(&["1"]), None)),
            Change::Mail(release(ids(&["3"]), Some(Time(900)))),
        ]);
        assert_eq!(held(store), []);
        assert_eq!(pending(store, 899), ["1", "2"]);
        assert_eq!(store.read(|store| store.next_lease_end(&mailbox(), Time(899))), Some(Time(900)));
        assert_eq!(store.read(|store| store.next_lease_end(&mailbox(), Time(900))), None);
        assert_eq!(pending(store, 900), ["1", "2", "3"]);
        let delivery: Option<Delivery> = store.read(|store| store.delivery(&mailbox(), &message_id("3")));
        assert_eq!(delivery.unwrap().attempts, 1, "a release counts no attempt");
        let other: Mailbox = crate::fixtures::mailbox("a", None);
        assert_eq!(store.read(|store| store.held(&other)), []);
    });
}
