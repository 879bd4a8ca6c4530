//! What is forgotten in time, and what is not.

use super::{Ports, each};
use crate::made::*;
use crate::stores::{DAY, WINDOWS};
use parlor_engine::plan::Change;
use parlor_engine::ports::{FirstUse, OnceKey, OnceKind};
use parlor_model::{Logged, Message, SecretHash, Seq, SignInId, Time};
use std::sync::Arc;

const NOON: Time = Time(1_700_000_000_000_000);

/// Three messages: at noon, a minute later, and a day after that.
fn three_messages(ports: &mut Ports) -> [Time; 3] {
    let minute = std::time::Duration::from_secs(60);
    let times = [NOON, NOON.plus(minute), NOON.plus(DAY)];
    ports.change(vec![put_room("lobby")]);
    for (seq, at) in (1..).zip(times) {
        let message = Arc::new(Message { at, ..message(&format!("m{seq}"), "lobby", "ann", seq) });
        let told = parlor_model::Event::MessagePosted { message: message.clone(), deliveries: Arc::new([]) };
        let mut plan = ports.plan(vec![Change::PutMessage(message)], vec![told]);
        plan.events[0].at = at;
        let mut transaction = ports.store.begin().unwrap();
        transaction.apply(&plan).unwrap();
        transaction.commit().unwrap();
    }
    times
}

fn seqs(tail: &[Logged]) -> Vec<u64> {
    tail.iter().map(|logged| logged.seq.0).collect()
}

#[test]
fn the_log_forgets_its_beginning_and_says_so() {
    each(|ports| {
        let [_, second, third] = three_messages(ports);
        ports.store.tend(second.plus(WINDOWS.log)).unwrap();
        let head = ports.store.head().unwrap();
        assert_eq!((seqs(&ports.tail()), head.trimmed), (vec![2, 3], Seq(1)));
        assert_eq!((head.seq, head.at), (Seq(3), third));
        let history =
            ports.read(|s| s.history(&room_id("lobby"), Seq(0), parlor_model::query::Page::After(Seq(0)), 9));
        assert_eq!(history.len(), 3, "the log is for resuming; the messages stay");
    });
}

#[test]
fn the_log_never_forgets_where_it_stands() {
    each(|ports| {
        let [.., third] = three_messages(ports);
        ports.store.tend(third.plus(100 * WINDOWS.log)).unwrap();
        ports.restart();
        let head = ports.store.head().unwrap();
        assert_eq!((head.seq, head.at, head.trimmed), (Seq(3), third, Seq(2)));
        assert_eq!(seqs(&ports.tail()), [3]);
        ports.post(message("m4", "lobby", "ann", 4));
        assert_eq!(seqs(&ports.tail()), [3, 4]);
    });
}

#[test]
fn a_retry_is_known_for_as_long_as_the_window() {
    each(|ports| {
        let key = OnceKey { kind: OnceKind::ClientMessage, owner: "ann".into(), key: "1".into() };
        let first = FirstUse { digest: [1; 16], message: message_id("m1"), seq: Seq(1) };
        ports.change(vec![Change::Remember { key: key.clone(), first: first.clone(), at: NOON }]);
        ports.store.tend(NOON.plus(WINDOWS.once)).unwrap();
        assert_eq!(ports.read(|s| s.first_use(&key)), Some(first));
        ports.store.tend(NOON.plus(WINDOWS.once).plus(DAY)).unwrap();
        assert_eq!(ports.read(|s| s.first_use(&key)), None);
    });
}

#[test]
fn sign_ins_that_ran_out_are_forgotten_with_their_tokens() {
    each(|ports| {
        let token = |byte| SecretHash([byte; 32]);
        for (byte, id, expires) in [(1, "old", 100), (2, "new", 200)] {
            ports.change(vec![Change::PutSignIn(Arc::new(sign_in(id, "ann", expires)), token(byte))]);
        }
        ports.store.tend(Time(100)).unwrap();
        let left = ports.read(|s| {
            let (old, new) = (s.sign_in(&SignInId::stored("old"))?, s.sign_in(&SignInId::stored("new"))?);
            Ok((old, s.refresh_token(&token(1))?, new.is_some(), s.refresh_token(&token(2))?.is_some()))
        });
        assert_eq!(left, (None, None, true, true));
    });
}
