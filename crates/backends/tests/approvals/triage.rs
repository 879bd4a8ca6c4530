//! Fallback of triage: runs for unaddressed messages when the triage port fails or does not answer.

use crate::scene::{Scene, coder};
use parlor_engine::ports::{Triage, TriageCase, TriageFuture};
use parlor_engine::{Fault, Limits, Severity};
use parlor_model::command::{ChangeRoom, Post, RoomChanges, StopRuns};
use parlor_model::{AnswerPolicy, Run, RunState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Triage that always fails; counts its calls.
#[derive(Default)]
struct FailingTriage(AtomicUsize);

impl Triage for FailingTriage {
    fn should_answer(&self, _: TriageCase) -> TriageFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {
            Err(Fault::new("calling the model", Severity::Transient, "the model is unavailable"))
        })
    }
}

/// Triage that never answers; counts its calls.
#[derive(Default)]
struct HangingTriage(AtomicUsize);

impl Triage for HangingTriage {
    fn should_answer(&self, _: TriageCase) -> TriageFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

/// Triage that never answers. Each call holds `held`.
#[derive(Default)]
struct HoldingTriage {
    called: Notify,
    held: Arc<()>,
}

impl Triage for HoldingTriage {
    fn should_answer(&self, _: TriageCase) -> TriageFuture {
        self.called.notify_one();
        let held = self.held.clone();
        Box::pin(async move {
            let _held = held;
            std::future::pending().await
        })
    }
}

async fn scene(directory: &std::path::Path, triage: Arc<dyn Triage>, limits: Limits) -> Scene {
    let scene = Scene::with(directory, triage, limits).await;
    let changes = RoomChanges { policy: Some(AnswerPolicy::Triage), ..RoomChanges::default() };
    scene.hub.execute(&scene.ann, ChangeRoom { room: scene.room.clone(), changes }).await.unwrap();
    scene
}

/// Posts a message as Bob and returns the run that it triggered.
async fn post(scene: &Scene, text: &str) -> Run {
    let new = Post {
        id: None,
        origin: None,
        author: None,
        room: scene.room.clone(),
        text: text.into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    };
    let posted = scene.hub.execute(&scene.bob, new).await;
    let posted = posted.unwrap();
    let mut found = Vec::new();
    scene
        .reader
        .with(&mut |store| {
            found = store.runs_of(&posted.id)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn state(scene: &Scene, run: &Run) -> RunState {
    let mut found = None;
    scene
        .reader
        .with(&mut |store| {
            found = store.run(&run.id)?;
            Ok(())
        })
        .unwrap();
    found.expect("the run is stored").state
}

/// Waits until the gateway receives the run, stops it, and reports the agent as online and idle.
async fn finish_run(scene: &Scene, run: &Run) {
    assert_eq!(scene.gateway.receives(run.id.as_str()).await, "work");
    let stop = StopRuns { room: scene.room.clone(), agent: coder() };
    scene.hub.execute(&scene.ann, stop).await.unwrap();
    // Returns after the scheduler has applied the stop, which the gateway confirms below.
    scene.hub.hosting().must_wait(run).await;
    let connection = *scene.gateway.connection.lock();
    scene.hub.hosting().report_status(connection, &coder(), parlor_model::AgentStatus::Online, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undecided_messages_are_answered_within_the_fallback_burst_and_then_stay_queued() {
    let directory = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3600);
    let limits = Limits { triage_fallback_burst: 2, triage_fallback_interval: hour, ..Limits::default() };
    let triage = Arc::new(FailingTriage::default());
    let scene = scene(directory.path(), triage.clone(), limits).await;
    for text in ["one", "two"] {
        let run = post(&scene, text).await;
        finish_run(&scene, &run).await;
    }
    let pending = post(&scene, "three").await;
    let called = post(&scene, "@Coder four").await;
    assert_eq!(
        scene.gateway.receives(called.id.as_str()).await,
        "work",
        "an addressed message needs no triage"
    );
    assert_eq!(state(&scene, &pending), RunState::Queued);
    assert!(!scene.gateway.received().iter().any(|(run, _)| run == pending.id.as_str()));
    assert_eq!(triage.0.load(Ordering::SeqCst), 3, "triage was called once for each");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_queued_for_the_fallback_limit_starts_when_the_limit_allows() {
    let directory = tempfile::tempdir().unwrap();
    let interval = Duration::from_millis(200);
    let limits = Limits { triage_fallback_burst: 1, triage_fallback_interval: interval, ..Limits::default() };
    let scene = scene(directory.path(), Arc::new(FailingTriage::default()), limits).await;
    for text in ["one", "two", "three"] {
        let run = post(&scene, text).await;
        finish_run(&scene, &run).await;
    }
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn triage_without_an_answer_ends_at_its_timeout() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { triage_timeout: Duration::from_millis(50), ..Limits::default() };
    let triage = Arc::new(HangingTriage::default());
    let scene = scene(directory.path(), triage.clone(), limits).await;
    let run = post(&scene, "anybody").await;
    finish_run(&scene, &run).await;
    assert_eq!(triage.0.load(Ordering::SeqCst), 1, "triage was called");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_a_hub_ends_the_tasks_that_start_its_runs() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { triage_timeout: Duration::from_secs(3600), ..Limits::default() };
    let triage = Arc::new(HoldingTriage::default());
    let scene = scene(directory.path(), triage.clone(), limits).await;
    post(&scene, "anybody").await;
    triage.called.notified().await;
    assert_eq!(Arc::strong_count(&triage.held), 2, "a task waits for the triage");
    scene.hub.close().await;
    assert_eq!(Arc::strong_count(&triage.held), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daily_budget_applies_to_undecided_messages() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { room_turns: 1, ..Limits::default() };
    let scene = scene(directory.path(), Arc::new(FailingTriage::default()), limits).await;
    let run = post(&scene, "one").await;
    finish_run(&scene, &run).await;
    let refused = post(&scene, "two").await;
    assert_eq!(
        refused.state,
        RunState::Ended(parlor_model::RunOutcome::Refused("the turns of this day are used up".into()))
    );
    scene.hub.close().await;
}
