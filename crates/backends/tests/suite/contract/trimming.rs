//! What is forgotten in time, and what is not.

use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::{DAY, WINDOWS};
use parlor_engine::decide::Change;
use parlor_engine::ports::{FirstRequest, IdempotencyKey, IdempotencyKind};
use parlor_model::query::{MailPage, Page};
use parlor_model::{AgentId, LoggedEvent, Mailbox, Message, Revision, SecretHash, Seq, SignInId, Time};
use std::sync::Arc;
use std::time::Duration;

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

fn seqs(tail: &[LoggedEvent]) -> Vec<u64> {
    tail.iter().map(|logged_event| logged_event.seq.0).collect()
}

#[test]
fn the_log_forgets_its_beginning_and_says_so() {
    each(|ports| {
        let [_, second, third] = three_messages(ports);
        ports.store.run_maintenance(second.plus(WINDOWS.log)).unwrap();
        let head = ports.store.head().unwrap();
        assert_eq!((seqs(&ports.tail()), head.trimmed_through), (vec![2, 3], Seq(1)));
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
        ports.store.run_maintenance(third.plus(100 * WINDOWS.log)).unwrap();
        ports.restart();
        let head = ports.store.head().unwrap();
        assert_eq!((head.seq, head.at, head.trimmed_through), (Seq(3), third, Seq(2)));
        assert_eq!(seqs(&ports.tail()), [3]);
        ports.post(message("m4", "lobby", "ann", 4));
        assert_eq!(seqs(&ports.tail()), [3, 4]);
    });
}

/// Tends once a day from `from` on, as a hub does that runs.
pub fn tend_daily(ports: &mut Ports, from: Time, days: u32) -> Time {
    for day in 0..=days {
        ports.store.run_maintenance(from.plus(DAY * day)).unwrap();
    }
    from.plus(DAY * days)
}

#[test]
fn messages_end_with_all_that_belongs_to_them_when_their_time_is_over() {
    each(|ports| {
        let [_, second, _] = three_messages(ports);
        let first = ports.read(|s| s.message(&message_id("m1"))).unwrap();
        let previous = Revision { message: first.id.clone(), text: "before".into(), edited_at: NOON };
        let mailbox = Mailbox::of(AgentId::stored("bot"));
        let delivery = delivery("m1", mailbox);
        ports.change(vec![
            Change::Revise { message: first.clone(), previous },
            Change::PutDelivery { delivery, seq: first.seq },
            Change::DeadLetter { message: first.clone(), reason: "nobody" },
        ]);
        let retention = WINDOWS.messages.unwrap();
        let left = |ports: &mut Ports| {
            ports.read(|s| {
                let history = s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9)?;
                let belongings = s.revisions(&message_id("m1"), 9)?.len()
                    + s.deliveries(&message_id("m1"))?.len()
                    + s.dead_letters(MailPage { limit: 9, from: None, to: None })?.len();
                Ok((history.iter().map(|message| message.seq.0).collect::<Vec<_>>(), belongings))
            })
        };
        tend_daily(ports, NOON, 9);
        assert_eq!(left(ports), (vec![1, 2, 3], 3), "not a moment too early");
        assert!(!ports.store.run_maintenance(second.plus(retention)).unwrap());
        assert_eq!(left(ports), (vec![2, 3], 0));
        let head = ports.store.head().unwrap();
        assert_eq!(head.seq, Seq(3), "the order goes on");
    });
}

#[test]
fn a_clock_that_leaps_takes_no_messages_until_it_has_been_right_for_a_day() {
    each(|ports| {
        three_messages(ports);
        let count = |ports: &mut Ports| {
            ports.read(|s| s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9)).len()
        };
        tend_daily(ports, NOON, 2);
        let far = NOON.plus(DAY * 3_650);
        for minutes in [0, 1, 60, 23 * 60] {
            ports.store.run_maintenance(far.plus(Duration::from_secs(minutes * 60))).unwrap();
            assert_eq!(count(ports), 3, "{minutes} minutes after the leap");
        }
        tend_daily(ports, NOON.plus(DAY * 2), 2);
        assert_eq!(count(ports), 3, "it was set right");
        tend_daily(ports, far, 1);
        assert_eq!(count(ports), 0, "it was right after all");
    });
}

#[test]
fn many_messages_go_slice_by_slice() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        let messages = (1..=2_500)
            .map(|seq| Arc::new(Message { at: NOON, ..message(&format!("m{seq}"), "lobby", "ann", seq) }));
        ports.change(messages.map(Change::PutMessage).collect());
        let then = NOON.plus(WINDOWS.messages.unwrap()).plus(DAY);
        ports.store.run_maintenance(NOON.plus(WINDOWS.messages.unwrap())).unwrap();
        let mut slices = 1;
        while ports.store.run_maintenance(then).unwrap() {
            slices += 1;
        }
        assert!(slices <= 13, "{slices}");
        let left = ports.read(|s| s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9));
        assert_eq!(left.len(), 0);
    });
}

#[test]
fn a_message_with_a_time_far_back_takes_nothing_along() {
    each(|ports| {
        three_messages(ports);
        ports.post(Message { at: Time(0), ..message("m4", "lobby", "ann", 4) });
        tend_daily(ports, NOON, 3);
        let history = ports.read(|s| s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9));
        assert_eq!(history.len(), 4);
    });
}

#[test]
fn a_retry_is_known_for_as_long_as_the_window() {
    each(|ports| {
        let key =
            IdempotencyKey { kind: IdempotencyKind::ClientMessage, owner: "ann".into(), key: "1".into() };
        let first = FirstRequest { digest: [1; 16], message: message_id("m1"), seq: Seq(1) };
        ports.change(vec![Change::RememberIdempotencyKey {
            key: key.clone(),
            first: first.clone(),
            at: NOON,
        }]);
        ports.store.run_maintenance(NOON.plus(WINDOWS.once)).unwrap();
        assert_eq!(ports.read(|s| s.first_use(&key)), Some(first));
        ports.store.run_maintenance(NOON.plus(WINDOWS.once).plus(DAY)).unwrap();
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
        ports.store.run_maintenance(Time(100)).unwrap();
        let left = ports.read(|s| {
            let (old, new) = (s.sign_in(&SignInId::stored("old"))?, s.sign_in(&SignInId::stored("new"))?);
            Ok((old, s.refresh_token(&token(1))?, new.is_some(), s.refresh_token(&token(2))?.is_some()))
        });
        assert_eq!(left, (None, None, true, true));
    });
}
