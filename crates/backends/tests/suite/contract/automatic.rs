//! Automatic turns: agents and sessions that have them, mail that runs hold, and decisions.

use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::WINDOWS;
use parlor_engine::changes::{AgentChange, Change, MailChange, Settlement, TurnChange};
use parlor_model::query::MailPage;
use parlor_model::{
    AgentId, AutoRun, Delivery, DeliveryState, Mailbox, MessageId, NewTurnDecision, Payload, RunId, Sender,
    Seq, Session, SessionId, SessionRef, Time, TurnDecisionKind, TurnPage,
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

/// Stores three messages in the mailbox of `a:main` and in that of `a`, where `2` is handled by a session.
fn with_mail(store: &mut Ports) {
    store.change(vec![put_user("ann", 1), put_agent("a", "ann")]);
    for id in ["1", "2", "3"] {
        let seq = store.next_seq();
        store.post(full_message(id, on_path("slack/team"), Sender::Source("bridge".into()), seq));
        let main = SessionRef { agent: agent_id("a"), session: SessionId::main() };
        let handled_by = if id == "2" { vec![main] } else { Vec::new() };
        let copies = [
            delivery(id, mailbox("a", Some("main"))),
            Delivery { handled_by, ..delivery(id, mailbox("a", None)) },
        ];
        let put = |delivery| Change::Mail(MailChange::PutDelivery { delivery, seq: Seq(seq) });
        store.change(copies.into_iter().map(put).collect());
    }
}

fn ids(ids: &[&str]) -> Vec<MessageId> {
    ids.iter().copied().map(message_id).collect()
}

fn hold(store: &mut Ports, mailbox: Mailbox, messages: &[&str]) {
    let DeliveryState::Leased { until } = DeliveryState::HELD else { unreachable!() };
    store.change(vec![Change::Mail(MailChange::Lease { mailbox, messages: ids(messages), until })]);
}

fn settle(store: &mut Ports, messages: &[&str], settlement: Settlement) {
    let session = SessionRef { agent: agent_id("a"), session: SessionId::main() };
    store.change(vec![Change::Mail(MailChange::SettleHeld { session, messages: ids(messages), settlement })]);
}

fn held(store: &Ports, mailbox: &Mailbox) -> Vec<(MessageId, u32)> {
    let held = store.read(|store| store.held(mailbox));
    held.into_iter().map(|copy| (copy.message, copy.attempts)).collect()
}

fn pending(store: &Ports, mailbox: &Mailbox, now: i64) -> Vec<MessageId> {
    let pending = store.read(|store| store.pending(mailbox, Time(now), 9));
    pending.into_iter().map(|(message, _)| message.id.clone()).collect()
}

#[test]
fn mail_that_a_run_holds_is_not_pending_until_it_is_settled() {
    each(|store| {
        with_mail(store);
        let main = mailbox("a", Some("main"));
        hold(store, main.clone(), &["1", "2", "3"]);
        assert_eq!(
            held(store, &main),
            ids(&["1", "2", "3"]).into_iter().map(|id| (id, 1)).collect::<Vec<_>>()
        );
        assert_eq!(pending(store, &main, i64::MAX - 1), []);
        assert_eq!(store.read(|store| store.next_lease_end(&main, Time(0))), None);

        settle(store, &["3"], Settlement::PendingFrom(Time(900)));
        settle(store, &["1"], Settlement::Delivered);
        settle(store, &["2"], Settlement::Dead("it failed".into()));
        settle(store, &["1", "2", "3"], Settlement::Delivered);
        assert_eq!(held(store, &main), []);
        let state = |id: &str| store.read(|s| s.delivery(&main, &message_id(id))).unwrap();
        assert_eq!((state("1").state, state("2").state), (DeliveryState::Delivered, DeliveryState::Dead));
        assert_eq!(state("3").attempts, 1, "a release counts no attempt");
        assert_eq!(pending(store, &main, 899), []);
        assert_eq!(store.read(|store| store.next_lease_end(&main, Time(899))), Some(Time(900)));
        assert_eq!(store.read(|store| store.next_lease_end(&main, Time(900))), None);
        assert_eq!(pending(store, &main, 900), ids(&["3"]), "it was no longer held");
        let letters = store.read(|s| s.dead_letters(MailPage { limit: 9, offset: 0, from: None, to: None }));
        let letters: Vec<_> = letters
            .iter()
            .map(|letter| (letter.message.id.as_str(), &*letter.reason, &letter.mailbox))
            .collect();
        assert_eq!(letters, [("2", "it failed", &Some(main.clone()))]);
        assert_eq!(pending(store, &mailbox("a", None), 0), ids(&["1", "2", "3"]), "another mailbox");
    });
}

#[test]
fn the_main_session_also_holds_mail_of_the_agents_own_mailbox() {
    each(|store| {
        with_mail(store);
        let (main, own) = (mailbox("a", Some("main")), mailbox("a", None));
        let unhandled = store.read(|s| s.unhandled(&own, Time(0), 9));
        let unhandled: Vec<_> = unhandled.into_iter().map(|(message, _)| message.id.clone()).collect();
        assert_eq!(unhandled, ids(&["1", "3"]));
        assert_eq!(store.read(|s| s.unhandled(&own, Time(0), 1)).len(), 1);
        hold(store, main.clone(), &["2"]);
        hold(store, own.clone(), &["1"]);
        settle(store, &["1", "2", "3"], Settlement::Delivered);
        assert_eq!(pending(store, &main, 0), ids(&["1", "3"]));
        assert_eq!(pending(store, &own, 0), ids(&["2", "3"]));
    });
}
