//! Mail that becomes pending without a message being posted: resent dead letters, and imported and moved mail.

use crate::scene::{SINGLE, Scene, agent};
use parlor_model::command::{
    AgentProfile, ChangeAgent, ImportMail, ImportedMessage, MoveAgent, ResendDeadLetter,
};
use parlor_model::{
    Caller, DeliveryState, Mailbox, MessageId, Path, Payload, Run, RunCause, RunOutcome, Time,
    TurnDecisionKind,
};
use std::time::Duration;

const OPERATOR: Caller = Caller::OPERATOR;
/// A batch is complete when it has three messages; the debounce is longer than any test.
const THREE: &str = r#"{"enabled":true,"maxBatchSize":3,"debounceMs":600000}"#;

/// Messages of the batch that caused a run.
fn messages(run: &Run) -> usize {
    match &run.cause {
        RunCause::Batch { messages, .. } => messages.len(),
        cause => panic!("{cause:?}"),
    }
}

fn imported(id: &str, to: &str) -> ImportedMessage {
    ImportedMessage {
        id: MessageId::stored(id),
        at: Time(5),
        from: "slack".into(),
        path: Path::parse(&format!("agent/{to}")).unwrap(),
        command: "slack.message".into(),
        payload: Payload("{}".into()),
        source: "slack".into(),
        external_id: None,
        is_delivered: false,
    }
}

fn import(to: Mailbox, count: usize) -> ImportMail {
    let messages = (0..count).map(|number| imported(&format!("imported-{number}"), "coder")).collect();
    ImportMail { mailbox: Some(to), messages }
}

#[tokio::test]
async fn imported_mail_is_handled_in_full_batches_one_turn_at_a_time() {
    let mut scene = Scene::start().await;
    scene.agent("coder", &[("autoRun", THREE)]).await;
    scene.online("coder").await;
    let mut command = import(Mailbox::of(agent("coder")), 7);
    command.messages.push(ImportedMessage { is_delivered: true, ..imported("old", "coder") });
    assert_eq!(scene.must(&OPERATOR, command).await, 8);
    let mut sizes = Vec::new();
    for number in 0..3 {
        let run = scene.starts(number).await;
        assert_eq!(scene.started(), number + 1, "the session has one turn at a time");
        sizes.push(messages(&run));
        scene.end(&run.id, RunOutcome::Complete).await;
    }
    assert_eq!(sizes, [3, 3, 1], "the time of an imported message has passed: no debounce");
    scene.decided("coder", TurnDecisionKind::Completed, 3).await;
    scene.close().await;
}

#[tokio::test]
async fn an_imported_copy_of_a_stored_message_starts_a_turn() {
    let mut scene = Scene::start().await;
    scene.agent("coder", &[]).await;
    scene.agent("writer", &[("autoRun", SINGLE)]).await;
    scene.online("writer").await;
    scene.must(&OPERATOR, import(Mailbox::of(agent("coder")), 1)).await;
    // The message is stored already, so that no event reports its copy.
    scene.must(&OPERATOR, import(Mailbox::of(agent("writer")), 1)).await;
    let run = scene.starts(0).await;
    assert_eq!((&run.agent, messages(&run)), (&agent("writer"), 1));
    scene.close().await;
}

#[tokio::test]
async fn a_resent_dead_letter_starts_a_turn_without_earlier_attempts() {
    let mut scene = Scene::start().await;
    scene.agent("lead", &[]).await;
    scene.agent("coder", &[("autoRun", SINGLE)]).await;
    let message = scene.send("lead", "coder").await;
    for _ in 0..5 {
        scene.clock.advance(Duration::from_secs(1));
        let run = scene.begin("coder", &[&message]).await;
        scene.end(&run, RunOutcome::Failed("it broke".into())).await;
    }
    scene.decided("coder", TurnDecisionKind::DeadLettered, 1).await;
    scene.online("coder").await;
    // Later than the check that the arrival of the agent causes: a message is the only mail.
    let other = scene.send("lead", "coder").await;
    let run = scene.starts(0).await;
    scene.end(&run.id, RunOutcome::Complete).await;
    scene.decided("coder", TurnDecisionKind::Completed, 1).await;

    let mailbox = Some(Mailbox::of(agent("coder")));
    scene.must(&scene.root, ResendDeadLetter { message: message.clone(), mailbox }).await;
    let run = scene.starts(1).await;
    assert_eq!(run.cause, RunCause::Batch { messages: vec![message.clone()], attempt: 1 });
    scene.end(&run.id, RunOutcome::Complete).await;
    for message in [&message, &other] {
        assert_eq!(scene.copy("coder", message).unwrap().state, DeliveryState::Delivered);
    }
    assert_eq!(scene.dead_letters(), []);
    scene.close().await;
}

#[tokio::test]
async fn moved_mail_starts_turns_of_the_other_agent_also_if_a_run_held_it() {
    let mut scene = Scene::start().await;
    scene.agent("lead", &[]).await;
    scene.hosted_agent("old").await;
    let new = scene.hosted_agent("new").await;
    let settings = vec![("autoRun".into(), Payload(SINGLE.into()))];
    let profile = AgentProfile { settings, ..AgentProfile::default() };
    scene.must(&scene.ann, ChangeAgent { id: agent("new"), profile }).await;
    scene.came_online(&new).await;
    let [held, pending] = [scene.send("lead", "old").await, scene.send("lead", "old").await];
    scene.begin("old", &[&held]).await;
    scene.must(&OPERATOR, MoveAgent { from: agent("old"), to: agent("new") }).await;
    scene.clock.advance(Duration::from_secs(1));
    let mut handled = Vec::new();
    for number in 0..2 {
        let run = scene.starts(number).await;
        assert_eq!(run.agent, agent("new"));
        let RunCause::Batch { messages, attempt } = &run.cause else { panic!("{:?}", run.cause) };
        handled.push((messages[0].clone(), *attempt));
        scene.end(&run.id, RunOutcome::Complete).await;
    }
    handled.sort_by_key(|(_, attempt)| *attempt);
    assert_eq!(handled, [(pending, 1), (held, 2)], "the run that was cut off counts as an attempt");
    scene.close().await;
}
