//! Leased mail through a whole hub: unacknowledged mail is delivered again, acknowledged mail never.

use super::news::{NOW, each, signed_in_user};
use super::reach::{agent, send, send_with};
use crate::test_hub::TestHub;
use parlor_model::command::{AcknowledgeMail, ReceiveMail};
use parlor_model::query::{ListMail, MailPage};
use parlor_model::{AgentId, Caller, Mailbox, MessageId, Time};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(1);

fn coder() -> Mailbox {
    Mailbox::of(AgentId::stored("coder"))
}

/// Signs Ann in; her agent `coder` sends `letters` messages to itself.
async fn ann(test_hub: &TestHub, letters: usize) -> Caller {
    let (_, ann) = signed_in_user(test_hub, "ann", 1).await;
    agent(test_hub, &ann, "coder", &[]).await;
    for _ in 0..letters {
        assert_eq!(send(test_hub, &ann, "coder", "agent/coder").await, ["coder"]);
    }
    ann
}

/// Leases mail and returns each message id with its number of delivery attempts.
async fn receive(test_hub: &TestHub, caller: &Caller, limit: usize) -> Vec<(MessageId, u32)> {
    let command = ReceiveMail { mailbox: coder(), limit, lease: Some(LEASE) };
    let mail = test_hub.hub().execute(caller, command).await.unwrap();
    mail.into_iter().map(|(message, copy)| (message.id.clone(), copy.attempts)).collect()
}

async fn acknowledge(test_hub: &TestHub, caller: &Caller, messages: Vec<MessageId>) -> usize {
    let command = AcknowledgeMail { mailbox: coder(), messages };
    test_hub.hub().execute(caller, command).await.unwrap()
}

fn at_second(test_hub: &TestHub, second: i64) {
    test_hub.clock.set(Time(NOW.0 + second * 1_000_000));
}

#[test]
fn unacknowledged_mail_is_delivered_again_and_dead_after_five_attempts() {
    each(async |test_hub| {
        let ann = ann(test_hub, 2).await;
        for times in 1..=5 {
            at_second(test_hub, i64::from(times) * 2);
            let received = receive(test_hub, &ann, 9).await;
            assert_eq!(received.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [times; 2]);
            assert_eq!(receive(test_hub, &ann, 9).await, [], "it is not delivered again during the lease");
        }
        at_second(test_hub, 20);
        assert_eq!(receive(test_hub, &ann, 9).await, []);
        let query =
            ListMail { mailbox: coder(), page: MailPage { limit: 9, offset: 0, from: None, to: None } };
        let mail = test_hub.hub().read(&ann, query).await.unwrap();
        assert!(mail.len() == 2 && mail.iter().all(|(_, copy)| copy.state.as_str() == "dead"));
    });
}

#[test]
fn acknowledged_mail_is_not_delivered_again() {
    each(async |test_hub| {
        let ann = ann(test_hub, 3).await;
        let received: Vec<MessageId> =
            receive(test_hub, &ann, 9).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(acknowledge(test_hub, &ann, vec![received[1].clone()]).await, 1);
        assert_eq!(
            acknowledge(test_hub, &ann, vec![received[1].clone()]).await,
            0,
            "it was already acknowledged"
        );
        at_second(test_hub, 10);
        assert_eq!(
            acknowledge(test_hub, &ann, vec![received[2].clone()]).await,
            1,
            "late, but it was not leased again"
        );
        assert_eq!(receive(test_hub, &ann, 9).await, [(received[0].clone(), 2)]);
    });
}

#[test]
fn a_message_listed_twice_is_acknowledged_once() {
    each(async |test_hub| {
        let ann = ann(test_hub, 1).await;
        let (id, _) = receive(test_hub, &ann, 1).await.remove(0);
        assert_eq!(acknowledge(test_hub, &ann, vec![id.clone(), id]).await, 1);
    });
}

#[test]
fn dead_mail_does_not_hide_pending_mail_behind_it() {
    each(async |test_hub| {
        let ann = ann(test_hub, 3).await;
        for times in 1..=5 {
            at_second(test_hub, times * 2);
            assert_eq!(receive(test_hub, &ann, 3).await.len(), 3);
        }
        at_second(test_hub, 20);
        send(test_hub, &ann, "coder", "agent/coder").await;
        send(test_hub, &ann, "coder", "agent/coder").await;
        let received = receive(test_hub, &ann, 1).await;
        assert_eq!(received.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [1]);
        assert_eq!(
            receive(test_hub, &ann, 9).await.len(),
            1,
            "the limit was one, so the other stayed pending"
        );
    });
}

#[test]
fn dead_mail_does_not_count_towards_the_response_size() {
    each(async |test_hub| {
        let (_, ann) = signed_in_user(test_hub, "ann", 1).await;
        agent(test_hub, &ann, "coder", &[]).await;
        // Each message reaches the maximum size of a response, so that a response contains only one.
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1024 * 1024));
        for _ in 0..2 {
            send_with(test_hub, &ann, "coder", "agent/coder", &long).await;
        }
        for second in 0..5 {
            at_second(test_hub, second * 2);
            assert_eq!(receive(test_hub, &ann, 9).await.len(), 1, "only the first message");
        }
        at_second(test_hub, 10);
        let received = receive(test_hub, &ann, 9).await;
        assert_eq!(
            received.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(),
            [1],
            "the second message"
        );
        assert_eq!(receive(test_hub, &ann, 9).await, [], "the first message is dead");
    });
}
