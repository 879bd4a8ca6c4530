//! Mail taken out on a lease, through a whole hub: nothing is lost, and nothing comes again once acknowledged.

use super::news::{NOW, each, person};
use super::reach::{agent, send, send_with};
use crate::test_hub::TestHub;
use parlor_model::query::{Answer, MailPage};
use parlor_model::{AgentId, Caller, Command, Mailbox, MessageId, Query, Receipt, Time};
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(1);

fn coder() -> Mailbox {
    Mailbox::of(AgentId::stored("coder"))
}

/// Ann, whose coder writes to itself so often.
async fn ann(test_hub: &TestHub, letters: usize) -> Caller {
    let (_, ann) = person(test_hub, "ann", 1).await;
    agent(test_hub, &ann, "coder", &[]).await;
    for _ in 0..letters {
        assert_eq!(send(test_hub, &ann, "coder", "agent/coder").await, ["coder"]);
    }
    ann
}

/// What came, and how often it was handed out by now.
async fn receive(test_hub: &TestHub, caller: &Caller, limit: usize) -> Vec<(MessageId, u32)> {
    let command = Command::Receive { mailbox: coder(), limit, lease: Some(LEASE) };
    let received = test_hub.hub().execute(caller, command).await;
    let Ok(Receipt::Received { mail }) = received else { panic!("received: {received:?}") };
    mail.into_iter().map(|(message, copy)| (message.id.clone(), copy.attempts)).collect()
}

async fn acknowledge(test_hub: &TestHub, caller: &Caller, messages: Vec<MessageId>) -> usize {
    let acknowledged =
        test_hub.hub().execute(caller, Command::Acknowledge { mailbox: coder(), messages }).await;
    let Ok(Receipt::Acknowledged(count)) = acknowledged else { panic!("acknowledged: {acknowledged:?}") };
    count
}

fn at_second(test_hub: &TestHub, second: i64) {
    test_hub.clock.set(Time(NOW.0 + second * 1_000_000));
}

#[test]
fn what_is_not_acknowledged_in_time_comes_again_and_is_given_up_after_five_times() {
    each(async |test_hub| {
        let ann = ann(test_hub, 2).await;
        for times in 1..=5 {
            at_second(test_hub, i64::from(times) * 2);
            let came = receive(test_hub, &ann, 9).await;
            assert_eq!(came.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [times; 2]);
            assert_eq!(receive(test_hub, &ann, 9).await, [], "while the lease lasts it is nobody else's");
        }
        at_second(test_hub, 20);
        assert_eq!(receive(test_hub, &ann, 9).await, []);
        let query = Query::Mail { mailbox: coder(), page: MailPage { limit: 9, from: None, to: None } };
        let read = test_hub.hub().read(&ann, query).await;
        let Ok(Answer::Mail(mail)) = read else { panic!("mail: {read:?}") };
        assert!(mail.len() == 2 && mail.iter().all(|(_, copy)| copy.state.as_str() == "dead"));
    });
}

#[test]
fn what_was_acknowledged_never_comes_again() {
    each(async |test_hub| {
        let ann = ann(test_hub, 3).await;
        let came: Vec<MessageId> = receive(test_hub, &ann, 9).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(acknowledge(test_hub, &ann, vec![came[1].clone()]).await, 1);
        assert_eq!(acknowledge(test_hub, &ann, vec![came[1].clone()]).await, 0, "it was already");
        at_second(test_hub, 10);
        assert_eq!(
            acknowledge(test_hub, &ann, vec![came[2].clone()]).await,
            1,
            "late, but nobody else took it"
        );
        assert_eq!(receive(test_hub, &ann, 9).await, [(came[0].clone(), 2)]);
    });
}

#[test]
fn one_message_named_twice_is_acknowledged_once() {
    each(async |test_hub| {
        let ann = ann(test_hub, 1).await;
        let (id, _) = receive(test_hub, &ann, 1).await.remove(0);
        assert_eq!(acknowledge(test_hub, &ann, vec![id.clone(), id]).await, 1);
    });
}

#[test]
fn what_is_given_up_does_not_hide_what_waits_behind_it() {
    each(async |test_hub| {
        let ann = ann(test_hub, 3).await;
        for times in 1..=5 {
            at_second(test_hub, times * 2);
            assert_eq!(receive(test_hub, &ann, 3).await.len(), 3);
        }
        at_second(test_hub, 20);
        send(test_hub, &ann, "coder", "agent/coder").await;
        send(test_hub, &ann, "coder", "agent/coder").await;
        let came = receive(test_hub, &ann, 1).await;
        assert_eq!(came.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [1]);
        assert_eq!(receive(test_hub, &ann, 9).await.len(), 1, "one was asked for, the other waited");
    });
}

#[test]
fn what_is_given_up_takes_no_room_from_what_goes_out() {
    each(async |test_hub| {
        let (_, ann) = person(test_hub, "ann", 1).await;
        agent(test_hub, &ann, "coder", &[]).await;
        // Each of them fills an answer alone.
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1024 * 1024));
        for _ in 0..2 {
            send_with(test_hub, &ann, "coder", "agent/coder", &long).await;
        }
        for second in 0..5 {
            at_second(test_hub, second * 2);
            assert_eq!(receive(test_hub, &ann, 9).await.len(), 1, "the first alone");
        }
        at_second(test_hub, 10);
        let came = receive(test_hub, &ann, 9).await;
        assert_eq!(came.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [1], "the second");
        assert_eq!(receive(test_hub, &ann, 9).await, [], "the first is given up");
    });
}
