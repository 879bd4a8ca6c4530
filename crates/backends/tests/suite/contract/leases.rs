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
async fn ann(house: &TestHub, letters: usize) -> Caller {
    let (_, ann) = person(house, "ann", 1).await;
    agent(house, &ann, "coder", &[]).await;
    for _ in 0..letters {
        assert_eq!(send(house, &ann, "coder", "agent/coder").await, ["coder"]);
    }
    ann
}

/// What came, and how often it was handed out by now.
async fn receive(house: &TestHub, caller: &Caller, limit: usize) -> Vec<(MessageId, u32)> {
    let command = Command::Receive { mailbox: coder(), limit, lease: Some(LEASE) };
    let received = house.hub().execute(caller, command).await;
    let Ok(Receipt::Received { mail }) = received else { panic!("received: {received:?}") };
    mail.into_iter().map(|(message, copy)| (message.id.clone(), copy.attempts)).collect()
}

async fn acknowledge(house: &TestHub, caller: &Caller, messages: Vec<MessageId>) -> usize {
    let acknowledged = house.hub().execute(caller, Command::Acknowledge { mailbox: coder(), messages }).await;
    let Ok(Receipt::Acknowledged(count)) = acknowledged else { panic!("acknowledged: {acknowledged:?}") };
    count
}

fn at_second(house: &TestHub, second: i64) {
    house.clock.set(Time(NOW.0 + second * 1_000_000));
}

#[test]
fn what_is_not_acknowledged_in_time_comes_again_and_is_given_up_after_five_times() {
    each(async |house| {
        let ann = ann(house, 2).await;
        for times in 1..=5 {
            at_second(house, i64::from(times) * 2);
            let came = receive(house, &ann, 9).await;
            assert_eq!(came.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [times; 2]);
            assert_eq!(receive(house, &ann, 9).await, [], "while the lease lasts it is nobody else's");
        }
        at_second(house, 20);
        assert_eq!(receive(house, &ann, 9).await, []);
        let query = Query::Mail { mailbox: coder(), page: MailPage { limit: 9, from: None, to: None } };
        let read = house.hub().read(&ann, query).await;
        let Ok(Answer::Mail(mail)) = read else { panic!("mail: {read:?}") };
        assert!(mail.len() == 2 && mail.iter().all(|(_, copy)| copy.state.as_str() == "dead"));
    });
}

#[test]
fn what_was_acknowledged_never_comes_again() {
    each(async |house| {
        let ann = ann(house, 3).await;
        let came: Vec<MessageId> = receive(house, &ann, 9).await.into_iter().map(|(id, _)| id).collect();
        assert_eq!(acknowledge(house, &ann, vec![came[1].clone()]).await, 1);
        assert_eq!(acknowledge(house, &ann, vec![came[1].clone()]).await, 0, "it was already");
        at_second(house, 10);
        assert_eq!(acknowledge(house, &ann, vec![came[2].clone()]).await, 1, "late, but nobody else took it");
        assert_eq!(receive(house, &ann, 9).await, [(came[0].clone(), 2)]);
    });
}

#[test]
fn one_message_named_twice_is_acknowledged_once() {
    each(async |house| {
        let ann = ann(house, 1).await;
        let (id, _) = receive(house, &ann, 1).await.remove(0);
        assert_eq!(acknowledge(house, &ann, vec![id.clone(), id]).await, 1);
    });
}

#[test]
fn what_is_given_up_does_not_hide_what_waits_behind_it() {
    each(async |house| {
        let ann = ann(house, 3).await;
        for times in 1..=5 {
            at_second(house, times * 2);
            assert_eq!(receive(house, &ann, 3).await.len(), 3);
        }
        at_second(house, 20);
        send(house, &ann, "coder", "agent/coder").await;
        send(house, &ann, "coder", "agent/coder").await;
        let came = receive(house, &ann, 1).await;
        assert_eq!(came.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [1]);
        assert_eq!(receive(house, &ann, 9).await.len(), 1, "one was asked for, the other waited");
    });
}

#[test]
fn what_is_given_up_takes_no_room_from_what_goes_out() {
    each(async |house| {
        let (_, ann) = person(house, "ann", 1).await;
        agent(house, &ann, "coder", &[]).await;
        // Each of them fills an answer alone.
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(1024 * 1024));
        for _ in 0..2 {
            send_with(house, &ann, "coder", "agent/coder", &long).await;
        }
        for second in 0..5 {
            at_second(house, second * 2);
            assert_eq!(receive(house, &ann, 9).await.len(), 1, "the first alone");
        }
        at_second(house, 10);
        let came = receive(house, &ann, 9).await;
        assert_eq!(came.iter().map(|(_, attempts)| *attempts).collect::<Vec<_>>(), [1], "the second");
        assert_eq!(receive(house, &ann, 9).await, [], "the first is given up");
    });
}
