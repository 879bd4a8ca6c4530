//! Retention: maintenance deletes rows older than their window and keeps the rest.

use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::{DAY, WINDOWS};
use parlor_engine::changes::{Change, CredentialChange, MailChange, MessageChange};
use parlor_engine::ports::{FirstRequest, IdempotencyKey, IdempotencyKind};
use parlor_model::query::{MailPage, Page};
use parlor_model::{AgentId, LoggedEvent, Mailbox, Message, Revision, SecretHash, Seq, SignInId, Time};
use std::sync::Arc;
use std::time::Duration;

const NOON: Time = Time(1_700_000_000_000_000);

/// Posts three messages: at `NOON`, a minute later, and a day after `NOON`.
fn three_messages(ports: &mut Ports) -> [Time; 3] {
    let minute = std::time::Duration::from_secs(60);
    let times = [NOON, NOON.plus(minute), NOON.plus(DAY)];
    ports.change(vec![put_room("lobby")]);
    for (seq, at) in (1..).zip(times) {
        let message = Arc::new(Message { at, ..message(&format!("m{seq}"), "lobby", "ann", seq) });
        let event = parlor_model::Event::MessagePosted { message: message.clone(), deliveries: Arc::new([]) };
        let mut effects =
            ports.effects(vec![Change::Message(MessageChange::PutMessage(message))], vec![event]);
        effects.events[0].at = at;
        let mut transaction = ports.store.begin().unwrap();
        transaction.apply(&effects).unwrap();
        transaction.commit().unwrap();
    }
    times
}

fn seqs(tail: &[LoggedEvent]) -> Vec<u64> {
    tail.iter().map(|logged_event| logged_event.seq.0).collect()
}

#[test]
fn the_oldest_log_entries_are_trimmed_and_the_head_records_it() {
    each(|ports| {
        let [_, second, third] = three_messages(ports);
        ports.store.run_maintenance(second.plus(WINDOWS.log)).unwrap();
        let head = ports.store.head().unwrap();
        assert_eq!((seqs(&ports.tail()), head.trimmed_through), (vec![2, 3], Seq(1)));
        assert_eq!((head.seq, head.at), (Seq(3), third));
        let history =
            ports.read(|s| s.history(&room_id("lobby"), Seq(0), parlor_model::query::Page::After(Seq(0)), 9));
        assert_eq!(history.len(), 3, "trimming the log does not delete messages");
    });
}

#[test]
fn trimming_keeps_the_newest_log_entry() {
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

/// Runs maintenance once a day from `from` on, as a running hub does. Returns the time of the last
/// maintenance.
pub fn run_daily_maintenance(ports: &mut Ports, from: Time, days: u32) -> Time {
    for day in 0..=days {
        ports.store.run_maintenance(from.plus(DAY * day)).unwrap();
    }
    from.plus(DAY * days)
}

#[test]
fn expired_messages_are_deleted_with_their_dependent_rows() {
    each(|ports| {
        let [_, second, _] = three_messages(ports);
        let first = ports.read(|s| s.message(&message_id("m1"))).unwrap();
        let previous = Revision { message: first.id.clone(), text: "before".into(), edited_at: NOON };
        let mailbox = Mailbox::of(AgentId::stored("bot"));
        let delivery = delivery("m1", mailbox);
        ports.change(vec![
            Change::Message(MessageChange::Revise { message: first.clone(), previous }),
            Change::Mail(MailChange::PutDelivery { delivery, seq: first.seq }),
            Change::Mail(MailChange::DeadLetter { message: first.clone(), reason: "nobody" }),
        ]);
        let retention = WINDOWS.messages.unwrap();
        let left = |ports: &mut Ports| {
            ports.read(|s| {
                let history = s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9)?;
                let dependents = s.revisions(&message_id("m1"), 9)?.len()
                    + s.deliveries(&message_id("m1"))?.len()
                    + s.dead_letters(MailPage { limit: 9, offset: 0, from: None, to: None })?.len();
                Ok((history.iter().map(|message| message.seq.0).collect::<Vec<_>>(), dependents))
            })
        };
        run_daily_maintenance(ports, NOON, 9);
        assert_eq!(left(ports), (vec![1, 2, 3], 3), "not before the window has passed");
        assert!(!ports.store.run_maintenance(second.plus(retention)).unwrap());
        assert_eq!(left(ports), (vec![2, 3], 0));
        let head = ports.store.head().unwrap();
        assert_eq!(head.seq, Seq(3), "the head does not move back");
    });
}

#[test]
fn after_a_clock_jump_no_message_is_deleted_for_a_day() {
    each(|ports| {
        three_messages(ports);
        let count = |ports: &mut Ports| {
            ports.read(|s| s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9)).len()
        };
        run_daily_maintenance(ports, NOON, 2);
        let far = NOON.plus(DAY * 3_650);
        for minutes in [0, 1, 60, 23 * 60] {
            ports.store.run_maintenance(far.plus(Duration::from_secs(minutes * 60))).unwrap();
            assert_eq!(count(ports), 3, "{minutes} minutes after the jump");
        }
        run_daily_maintenance(ports, NOON.plus(DAY * 2), 2);
        assert_eq!(count(ports), 3, "the clock was corrected");
        run_daily_maintenance(ports, far, 1);
        assert_eq!(count(ports), 0, "the clock has been stable for a day");
    });
}

#[test]
fn many_messages_are_deleted_in_slices() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        let messages = (1..=2_500)
            .map(|seq| Arc::new(Message { at: NOON, ..message(&format!("m{seq}"), "lobby", "ann", seq) }));
        ports.change(messages.map(|it| Change::Message(MessageChange::PutMessage(it))).collect());
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
fn a_message_with_an_old_time_does_not_delete_earlier_messages() {
    each(|ports| {
        three_messages(ports);
        ports.post(Message { at: Time(0), ..message("m4", "lobby", "ann", 4) });
        run_daily_maintenance(ports, NOON, 3);
        let history = ports.read(|s| s.history(&room_id("lobby"), Seq(0), Page::After(Seq(0)), 9));
        assert_eq!(history.len(), 4);
    });
}

#[test]
fn an_idempotency_key_is_kept_for_its_window() {
    each(|ports| {
        let key =
            IdempotencyKey { kind: IdempotencyKind::ClientMessage, owner: "ann".into(), key: "1".into() };
        let first = FirstRequest { digest: [1; 16], message: message_id("m1"), seq: Seq(1) };
        ports.change(vec![Change::Message(MessageChange::RememberIdempotencyKey {
            key: key.clone(),
            first: first.clone(),
            at: NOON,
        })]);
        ports.store.run_maintenance(NOON.plus(WINDOWS.once)).unwrap();
        assert_eq!(ports.read(|s| s.first_use(&key)), Some(first));
        ports.store.run_maintenance(NOON.plus(WINDOWS.once).plus(DAY)).unwrap();
        assert_eq!(ports.read(|s| s.first_use(&key)), None);
    });
}

#[test]
fn expired_sign_ins_are_deleted_with_their_tokens() {
    each(|ports| {
        let token = |byte| SecretHash([byte; 32]);
        for (byte, id, expires) in [(1, "old", 100), (2, "new", 200)] {
            ports.change(vec![Change::Credential(CredentialChange::PutSignIn(
                Arc::new(sign_in(id, "ann", expires)),
                token(byte),
            ))]);
        }
        ports.store.run_maintenance(Time(100)).unwrap();
        let left = ports.read(|s| {
            let (old, new) = (s.sign_in(&SignInId::stored("old"))?, s.sign_in(&SignInId::stored("new"))?);
            Ok((old, s.refresh_token(&token(1))?, new.is_some(), s.refresh_token(&token(2))?.is_some()))
        });
        assert_eq!(left, (None, None, true, true));
    });
}
