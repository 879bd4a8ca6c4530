//! Transactions: changes are invisible before the commit and complete after it.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, Change, MailChange, MessageChange, RoomChange};
use parlor_engine::effects::Effects;
use parlor_engine::ports::{FirstRequest, IdempotencyKey, IdempotencyKind};
use parlor_model::{Event, EventAudience, Mailbox, Message, Seq, Time, User};
use std::sync::Arc;

fn user_changed(user: &Arc<User>) -> Event {
    Event::UserChanged { user: user.clone(), audience: Arc::new(EventAudience::user_and_rooms(&user.id, [])) }
}

#[test]
fn changes_are_invisible_before_the_commit() {
    each(|ports| {
        let ann = Arc::new(user("ann", 1));
        let effects = ports
            .effects(vec![Change::Account(AccountChange::PutUser(ann.clone()))], vec![user_changed(&ann)]);
        let reader = ports.reader.clone();
        let seen = || {
            let mut seen = None;
            reader
                .with(&mut |snapshot| {
                    seen = Some((snapshot.user(&ann.id)?, snapshot.head()?.seq, snapshot.tail(Seq(0), 9)?));
                    Ok(())
                })
                .unwrap();
            seen.unwrap()
        };
        let mut transaction = ports.store.begin().unwrap();
        transaction.apply(&effects).unwrap();
        assert_eq!(
            transaction.lookup().user(&ann.id).unwrap().as_ref(),
            Some(&*ann),
            "the writer sees its own changes"
        );
        assert_eq!(seen(), (None, Seq(0), vec![]));
        transaction.commit().unwrap();
        assert_eq!(seen(), (Some(ann.as_ref().clone()), Seq(1), effects.events));
    });
}

#[test]
fn dropping_a_transaction_rolls_it_back() {
    each(|ports| {
        ports.commit(
            vec![put_user("ann", 1), put_room("lobby"), put_member("lobby", person("ann"), 2)],
            vec![],
        );
        ports.post(message("first", "lobby", "ann", 1));
        let before = ports.store.head().unwrap();

        let key =
            IdempotencyKey { kind: IdempotencyKind::ClientMessage, owner: "ann".into(), key: "1".into() };
        let first = FirstRequest { digest: [1; 16], message: message_id("second"), seq: Seq(2) };
        let second = Arc::new(message("second", "lobby", "ann", 2));
        let effects = ports.effects(
            vec![
                put_user("bob", 3),
                Change::Message(MessageChange::DeleteMessage(message_id("first"))),
                Change::Message(MessageChange::PutMessage(second.clone())),
                Change::Room(RoomChange::RemoveMember(room_id("lobby"), person("ann"))),
                Change::Message(MessageChange::RememberIdempotencyKey {
                    key: key.clone(),
                    first,
                    at: second.at,
                }),
            ],
            vec![Event::MessagePosted { message: second, deliveries: Arc::new([]) }],
        );
        let mut transaction = ports.store.begin().unwrap();
        transaction.apply(&effects).unwrap();
        assert_eq!(transaction.lookup().message(&message_id("first")).unwrap(), None);
        drop(transaction);

        assert_eq!(ports.store.head().unwrap(), before);
        let left = ports.read(|s| {
            let messages = (s.message(&message_id("first"))?.is_some(), s.message(&message_id("second"))?);
            let ann = s.member(&room_id("lobby"), &person("ann"))?.is_some();
            Ok((s.user(&user_id("bob"))?, messages, ann, s.first_use(&key)?, s.tail(Seq(0), 9)?.len()))
        });
        assert_eq!(left, (None, (true, None), true, None, 1));
    });
}

#[test]
fn a_snapshot_does_not_see_later_commits() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1)]);
        let reader = ports.reader.clone();
        let mut seen = Vec::new();
        reader
            .with(&mut |snapshot| {
                seen.push(snapshot.users(9, 0)?.1);
                ports.change(vec![put_user("bob", 2)]);
                seen.push(snapshot.users(9, 0)?.1);
                Ok(())
            })
            .unwrap();
        seen.push(ports.read(|s| s.users(9, 0)).1);
        assert_eq!(seen, [1, 1, 2]);
    });
}

#[test]
fn committed_data_survives_a_restart() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1), put_room("lobby"), put_member("lobby", person("ann"), 2)]);
        ports.post(message("hello", "lobby", "ann", 1));
        let (head, log) = (ports.store.head().unwrap(), ports.tail());
        ports.restart();
        assert_eq!((ports.store.head().unwrap(), ports.tail()), (head, log));
        ports.post(message("again", "lobby", "ann", 2));
        assert_eq!(ports.store.head().unwrap().seq, Seq(2));
    });
}

#[test]
fn sequence_numbers_of_the_log_are_gap_free() {
    each(|ports| {
        for id in ["a", "b", "c", "d"] {
            let user = Arc::new(user(id, 1));
            let events = vec![user_changed(&user), Event::SignInsEnded(user.id.clone())];
            ports.commit(vec![Change::Account(AccountChange::PutUser(user))], events);
        }
        let seqs: Vec<u64> = ports.tail().iter().map(|logged_event| logged_event.seq.0).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7, 8]);
        let head = ports.store.head().unwrap();
        assert_eq!((head.seq, head.at.0, head.trimmed_through), (Seq(8), 8000, Seq(0)));
        assert_eq!(ports.read(|s| s.head()), head, "readers see the same head");
    });
}

#[test]
fn messages_of_a_batch_are_readable_within_the_transaction_and_after_it() {
    each(|ports| {
        let coder = mailbox("coder", None);
        // Enough rows for several multi-row statements and a remainder.
        let ids: Vec<String> = (1..=75).map(|number| format!("m{number}")).collect();
        let batch: Vec<Effects> = ids.iter().map(|id| routed_to(ports, id, &coder)).collect();
        let mut transaction = ports.store.begin().unwrap();
        for (number, effects) in batch.iter().enumerate() {
            transaction.apply(effects).unwrap();
            // SQLite buffers inserts and writes them before a read. These reads find 1, 16 and 44 buffered
            // messages: less than one multi-row statement, exactly one, and several with a remainder.
            if [0, 16, 60].contains(&number) {
                let pending = transaction.lookup().pending(&coder, Time(0), usize::MAX).unwrap();
                assert_eq!(pending.len(), number + 1);
                assert!(transaction.lookup().message(&message_id(&ids[number])).unwrap().is_some());
            }
        }
        transaction.commit().unwrap();
        let pending = ports.read(|s| s.pending(&coder, Time(0), usize::MAX));
        let found: Vec<&str> = pending.iter().map(|(message, _)| message.id.as_str()).collect();
        assert_eq!(found, ids);
        let expected: Vec<Event> =
            batch.into_iter().flat_map(|effects| effects.events).map(|it| it.event).collect();
        assert_eq!(ports.events(), expected);
    });
}

fn routed_to(ports: &mut Ports, id: &str, mailbox: &Mailbox) -> Effects {
    let seq = ports.next_seq();
    let message = Arc::new(Message { destination: on_path("slack/x"), ..message(id, "", "ann", seq) });
    let copy = delivery(id, mailbox.clone());
    let event = Event::MessagePosted { message: message.clone(), deliveries: Arc::new([copy.clone()]) };
    let changes = vec![
        Change::Message(MessageChange::PutMessage(message)),
        Change::Mail(MailChange::PutDelivery { delivery: copy, seq: Seq(seq) }),
    ];
    ports.effects(changes, vec![event])
}
