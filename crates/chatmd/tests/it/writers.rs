//! Several writers at once, with a follower that waits for notifications.

use crate::scene::Project;
use parlor_chatmd::{Follower, ReadMessage, Start, append};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const WRITERS: usize = 4;
const LINES: usize = 5_000;

/// Reads until `count` messages have arrived.
async fn read(follower: &mut Follower, count: usize) -> Vec<ReadMessage> {
    let mut messages = Vec::new();
    while messages.len() < count {
        let batch = follower.poll(Instant::now());
        assert_eq!(batch.notices, []);
        messages.extend(batch.messages);
        if !batch.more {
            follower.changed(batch.wake_at).await;
        }
    }
    messages
}

/// Checks that each writer's lines arrived once and in order.
fn check(messages: &[ReadMessage]) {
    assert_eq!(messages.len(), WRITERS * LINES);
    let mut next = [0; WRITERS];
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message.line_number, index as u64 + 1);
        let (writer, number) = message.line.message.split_once(' ').unwrap();
        let writer: usize = writer.parse().unwrap();
        assert_eq!(number.parse(), Ok(next[writer]), "writer {writer}");
        next[writer] += 1;
    }
}

#[tokio::test]
async fn four_writers_with_split_writes_lose_and_repeat_nothing() {
    let project = Project::new();
    let mut follower = Follower::open(project.workplace(), Start::End).unwrap();
    // Each line is written in two parts; the writers keep their lines apart themselves.
    let turn = Arc::new(Mutex::new(()));
    let mut rng = parlor_seed::rng();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (turn, seed) = (turn.clone(), rng.draw());
            let mut file = OpenOptions::new().append(true).open(project.chat()).unwrap();
            std::thread::spawn(move || {
                let mut rng = parlor_seed::Rng::new(seed);
                for number in 0..LINES {
                    let line = format!("[w-to-r]: {writer} {number}\n");
                    let (first, second) = line.split_at(1 + rng.draw() as usize % (line.len() - 1));
                    let _turn = turn.lock().unwrap();
                    file.write_all(first.as_bytes()).unwrap();
                    file.write_all(second.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    let messages = read(&mut follower, WRITERS * LINES).await;
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    check(&messages);
}

#[tokio::test]
async fn four_writers_that_append_lose_and_repeat_nothing() {
    let project = Project::new();
    let mut follower = Follower::open(project.workplace(), Start::End).unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let workplace = project.workplace();
            std::thread::spawn(move || {
                for number in 0..LINES {
                    let line = format!("[w-to-r]: {writer} {number}\n");
                    append(&workplace, line.as_bytes(), false).unwrap();
                }
            })
        })
        .collect();
    let messages = read(&mut follower, WRITERS * LINES).await;
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    check(&messages);
}

#[tokio::test]
async fn a_follower_is_notified_of_appends_and_of_new_files() {
    let project = Project::new();
    let mut follower = Follower::open(project.workplace(), Start::End).unwrap();
    for round in 0..5 {
        let text = format!("{round} appended");
        project.append(format!("[a-to-b]: {text}\n"));
        assert_eq!(next(&mut follower).await, text);
        let text = format!("{round} replaced");
        project.replace(format!("[a-to-b]: {text}\n"));
        assert_eq!(next(&mut follower).await, text);
    }
}

async fn next(follower: &mut Follower) -> String {
    loop {
        let batch = follower.poll(Instant::now());
        if let [message] = &*batch.messages {
            return message.line.message.clone();
        }
        if !batch.more {
            follower.changed(batch.wake_at).await;
        }
    }
}
