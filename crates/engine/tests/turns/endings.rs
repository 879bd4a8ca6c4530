//! Every way in which a run for a batch of mail ends, and its effect on the mail that it holds.

use crate::scene::{Scene, agent, go};
use parlor_model::command::{
    AddMember, AgentProfile, BatchVerdict, ChangeAgent, ChangeSession, CreateRoom, DeleteRoom, MoveAgent,
    ReleaseBatch, RemoveAgent, RoomChanges, SessionChanges, StopSession,
};
use parlor_model::{
    Caller, DeliveryState, Edit, MemberId, MessageId, Payload, RoomRole, RunOutcome, SessionId,
    TurnDecisionKind,
};
use std::time::Duration;

const OPERATOR: Caller = Caller::OPERATOR;

async fn scene() -> (Scene, MessageId) {
    let scene = Scene::start().await;
    scene.agent("lead", &[]).await;
    scene.agent("coder", &[]).await;
    let message = scene.send("lead", "coder").await;
    (scene, message)
}

/// State and attempts of the copy in the mailbox of `coder`.
fn state(scene: &Scene, message: &MessageId) -> (DeliveryState, u32) {
    let copy = scene.copy("coder", message).expect("the copy exists");
    (copy.state, copy.attempts)
}

/// Whether the mail is pending. Moves the clock, because the time of a commit may be later than that of the clock.
fn is_pending(scene: &Scene, message: &MessageId) -> bool {
    scene.clock.advance(Duration::from_secs(1));
    state(scene, message).0.is_deliverable(scene.hub().now())
}

#[tokio::test]
async fn only_a_completed_or_stopped_run_acknowledges_its_mail() {
    let failed = RunOutcome::Failed("it broke".into());
    let refused = RunOutcome::Refused("no room".into());
    for (outcome, acknowledged, kind, reason) in [
        (RunOutcome::Complete, true, "completed", None),
        (RunOutcome::Cancelled, true, "cancelled", Some("a user stopped the run")),
        (failed, false, "retried", Some("it broke")),
        (refused, false, "retried", Some("no room")),
        (RunOutcome::Interrupted, false, "retried", Some("the connection to the agent was lost")),
    ] {
        let (mut scene, message) = scene().await;
        // Only a queued run can be refused.
        let run = match outcome {
            RunOutcome::Refused(_) => scene.decide("coder", &[&message], go()).await.run.unwrap(),
            _ => scene.begin("coder", &[&message]).await,
        };
        assert_eq!(state(&scene, &message), (DeliveryState::HELD, 1), "held by the run");
        scene.end(&run, outcome.clone()).await;
        let (stored, attempts) = state(&scene, &message);
        assert_eq!((stored == DeliveryState::Delivered, attempts), (acknowledged, 1), "{outcome:?}");
        assert_eq!(is_pending(&scene, &message), !acknowledged, "{outcome:?}");
        assert_eq!(scene.kinds("coder"), ["debounced", "triaged_yes", "run", kind]);
        let last = scene.decisions("coder").pop().unwrap();
        assert_eq!((last.reason.as_deref(), last.run, last.attempt), (reason, Some(run), 1));
        scene.close().await;
    }
}

#[tokio::test]
async fn the_fifth_failure_is_a_dead_letter_with_the_reason_of_the_run() {
    let (mut scene, message) = scene().await;
    for attempt in 1..=5 {
        assert!(is_pending(&scene, &message));
        let run = scene.begin("coder", &[&message]).await;
        assert_eq!(state(&scene, &message), (DeliveryState::HELD, attempt));
        scene.end(&run, RunOutcome::Failed(format!("failure {attempt}").into())).await;
    }
    assert_eq!(state(&scene, &message), (DeliveryState::Dead, 5));
    let [letter] = &scene.dead_letters()[..] else { panic!("one dead letter") };
    assert_eq!((&letter.message.id, &*letter.reason), (&message, "failure 5"));
    assert_eq!(scene.decide("coder", &[&message], go()).await.run, None, "no sixth attempt");
    scene.close().await;
}

#[tokio::test]
async fn new_mail_does_not_share_the_attempts_of_mail_that_is_retried() {
    let (mut scene, old) = scene().await;
    let run = scene.begin("coder", &[&old]).await;
    scene.end(&run, RunOutcome::Interrupted).await;
    assert!(is_pending(&scene, &old));
    let new = scene.send("lead", "coder").await;
    let receipt = scene.decide("coder", &[&old, &new], go()).await;
    assert_eq!(receipt.messages, 1);
    assert_eq!((state(&scene, &old), state(&scene, &new).1), ((DeliveryState::HELD, 2), 0));
    scene.close().await;
}

#[tokio::test]
async fn a_verdict_declines_or_holds_mail_and_a_session_has_one_run_at_a_time() {
    let (mut scene, message) = scene().await;
    let hold = BatchVerdict::Hold { reason: "no budget".into() };
    assert!(scene.decide("coder", &[&message], hold).await.is_waiting);
    assert!(is_pending(&scene, &message));
    scene.begin("coder", &[&message]).await;
    let second = scene.send("lead", "coder").await;
    let receipt = scene.decide("coder", &[&second], go()).await;
    assert_eq!((receipt.run, receipt.is_waiting), (None, false), "the other run is open");
    assert_eq!(scene.decide("coder", &[&message], go()).await.run, None, "held mail is not pending");
    let decline = BatchVerdict::Decline { reason: "chatter".into() };
    scene.decide("coder", &[&second, &message], decline).await;
    assert_eq!(state(&scene, &second), (DeliveryState::Delivered, 0));
    assert_eq!(state(&scene, &message), (DeliveryState::HELD, 1), "the run keeps its mail");
    let foreign = scene.send("coder", "lead").await;
    assert_eq!(scene.decide("coder", &[&foreign], go()).await.messages, 0, "mail of another agent");
    assert_eq!(scene.kinds("coder")[3..], ["run", "debounced", "triaged_no"]);
    scene.close().await;
}

#[tokio::test]
async fn only_mail_whose_run_does_not_exist_is_released() {
    let (mut scene, message) = scene().await;
    scene.begin("coder", &[&message]).await;
    let release = ReleaseBatch { agent: agent("coder"), session: SessionId::main() };
    assert_eq!(scene.must(&OPERATOR, release.clone()).await, 0, "the run is open");
    assert!(scene.hub().execute(&scene.ann, release).await.is_err(), "only the hub releases mail");
    assert_eq!(state(&scene, &message), (DeliveryState::HELD, 1));
    scene.close().await;
}

#[tokio::test]
async fn mail_of_a_run_in_a_removed_room_is_pending_again() {
    let (mut scene, message) = scene().await;
    let changes = RoomChanges { name: Some("Den".into()), ..RoomChanges::default() };
    let room = scene.must(&scene.ann, CreateRoom { changes, members: Vec::new() }).await.id.clone();
    let (member, role) = (MemberId::Agent(agent("coder")), RoomRole::Member);
    scene.must(&scene.ann, AddMember { room: room.clone(), member, role, description: None }).await;
    let changes = SessionChanges { room: Edit::Set(room.clone()), ..SessionChanges::default() };
    let (of, session) = (agent("coder"), SessionId::main());
    scene.must(&scene.ann, ChangeSession { agent: of.clone(), session: session.clone(), changes }).await;
    let run = scene.begin("coder", &[&message]).await;
    assert_eq!(scene.run(&run).unwrap().room(), Some(&room));
    // The session has no automatic turns: the transaction that removes the room must release its mail.
    scene.must(&scene.ann, DeleteRoom { room }).await;
    assert!(is_pending(&scene, &message));
    assert_eq!(state(&scene, &message).1, 1, "it counts as an attempt");
    let last = scene.decisions("coder").pop().unwrap();
    assert_eq!(last.reason.as_deref(), Some("the room of the run was removed"));
    assert_eq!(scene.must(&OPERATOR, ReleaseBatch { agent: of, session }).await, 0);
    scene.close().await;
}

#[tokio::test]
async fn mail_of_a_removed_agent_is_removed_with_its_run() {
    let (mut scene, message) = scene().await;
    let run = scene.begin("coder", &[&message]).await;
    scene.must(&scene.ann, RemoveAgent { id: agent("coder") }).await;
    assert_eq!((scene.copy("coder", &message), scene.dead_letters().len()), (None, 0));
    assert!(scene.run(&run).is_none_or(|run| run.has_ended()));
    scene.close().await;
}

#[tokio::test]
async fn a_batch_ends_like_any_other_after_automatic_turns_were_switched_off() {
    let (mut scene, message) = scene().await;
    let settings = |json: &str| {
        let settings = vec![("autoRun".into(), Payload(json.into()))];
        ChangeAgent { id: agent("coder"), profile: AgentProfile { settings, ..AgentProfile::default() } }
    };
    scene.must(&scene.ann, settings("true")).await;
    let run = scene.begin("coder", &[&message]).await;
    scene.must(&scene.ann, settings("false")).await;
    assert_eq!(state(&scene, &message).0, DeliveryState::HELD);
    scene.end(&run, RunOutcome::Failed("it broke".into())).await;
    assert!(is_pending(&scene, &message), "a program can receive it");
    scene.close().await;
}

#[tokio::test]
async fn a_stopped_session_acknowledges_mail_of_its_queued_run() {
    let (mut scene, message) = scene().await;
    scene.decide("coder", &[&message], go()).await.run.expect("a run was queued");
    let stop = StopSession { agent: agent("coder"), session: SessionId::main() };
    scene.must(&scene.ann, stop).await;
    assert_eq!(state(&scene, &message).0, DeliveryState::Delivered);
    scene.decided("coder", TurnDecisionKind::Cancelled, 1).await;
    scene.close().await;
}

#[tokio::test]
async fn only_agents_that_the_hub_hosts_are_moved_so_that_held_mail_stays() {
    let (mut scene, message) = scene().await;
    scene.begin("coder", &[&message]).await;
    let command = MoveAgent { from: agent("coder"), to: agent("lead") };
    assert!(scene.hub().execute(&OPERATOR, command).await.is_err());
    assert_eq!(state(&scene, &message).0, DeliveryState::HELD);
    scene.close().await;
}
