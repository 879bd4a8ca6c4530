//! Whether an agent should answer, where whoever is to say so fails or says nothing.

use crate::scene::{Scene, coder};
use parlor_engine::ports::{Triage, TriageCase, TriageFuture};
use parlor_engine::{Fault, Limits, Severity};
use parlor_model::command::{Post, RoomChanges};
use parlor_model::{AnswerPolicy, Command, Receipt, Run, RunState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Default)]
struct Broken(AtomicUsize);

impl Triage for Broken {
    fn should_answer(&self, _: TriageCase) -> TriageFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Err(Fault::new("asking a model", Severity::Transient, "it is not there")) })
    }
}

#[derive(Default)]
struct Hanging(AtomicUsize);

impl Triage for Hanging {
    fn should_answer(&self, _: TriageCase) -> TriageFuture {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

async fn scene(directory: &std::path::Path, triage: Arc<dyn Triage>, limits: Limits) -> Scene {
    let scene = Scene::with(directory, triage, limits).await;
    let changes = RoomChanges { policy: Some(AnswerPolicy::Triage), ..RoomChanges::default() };
    scene.hub.execute(&scene.ann, Command::ChangeRoom { room: scene.room.clone(), changes }).await.unwrap();
    scene
}

/// Says something to nobody, and gives the turn that came of it.
async fn say(scene: &Scene, text: &str) -> Run {
    let post = Post {
        room: scene.room.clone(),
        text: text.into(),
        mentions: Vec::new(),
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    };
    let posted = scene.hub.execute(&scene.bob, Command::Post(post)).await;
    let Ok(Receipt::Posted(posted)) = posted else { panic!("{posted:?}") };
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
    found.expect("it is kept").state
}

/// It does what it was given, and is free for the next.
async fn is_done(scene: &Scene, run: &Run) {
    assert_eq!(scene.gateway.hears(run.id.as_str()).await, "work");
    scene.hub.stop(&scene.ann, &scene.room, &coder()).await.unwrap();
    let link = *scene.gateway.link.lock();
    scene.hub.report_status(link, &coder(), parlor_model::AgentStatus::Online, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_decide_is_answered_while_there_is_room_for_it_and_then_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3600);
    let limits = Limits { triage_fallback_burst: 2, triage_fallback_interval: hour, ..Limits::default() };
    let triage = Arc::new(Broken::default());
    let scene = scene(directory.path(), triage.clone(), limits).await;
    for text in ["one", "two"] {
        let run = say(&scene, text).await;
        is_done(&scene, &run).await;
    }
    let pending = say(&scene, "three").await;
    let called = say(&scene, "@Coder four").await;
    assert_eq!(
        scene.gateway.hears(called.id.as_str()).await,
        "work",
        "who is called by name waits for nothing"
    );
    assert_eq!(state(&scene, &pending), RunState::Queued);
    assert!(!scene.gateway.heard().iter().any(|(run, _)| run == pending.id.as_str()));
    assert_eq!(triage.0.load(Ordering::SeqCst), 3, "each was asked about once");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_for_room_begins_when_there_is_some() {
    let directory = tempfile::tempdir().unwrap();
    let every = Duration::from_millis(200);
    let limits = Limits { triage_fallback_burst: 1, triage_fallback_interval: every, ..Limits::default() };
    let scene = scene(directory.path(), Arc::new(Broken::default()), limits).await;
    for text in ["one", "two", "three"] {
        let run = say(&scene, text).await;
        is_done(&scene, &run).await;
    }
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_that_does_not_come_is_not_waited_for_longer_than_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { triage_timeout: Duration::from_millis(50), ..Limits::default() };
    let triage = Arc::new(Hanging::default());
    let scene = scene(directory.path(), triage.clone(), limits).await;
    let run = say(&scene, "anybody").await;
    is_done(&scene, &run).await;
    assert_eq!(triage.0.load(Ordering::SeqCst), 1, "it was asked");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_of_the_day_binds_also_what_nobody_can_decide() {
    let directory = tempfile::tempdir().unwrap();
    let limits = Limits { room_turns: 1, ..Limits::default() };
    let scene = scene(directory.path(), Arc::new(Broken::default()), limits).await;
    let run = say(&scene, "one").await;
    is_done(&scene, &run).await;
    let refused = say(&scene, "two").await;
    assert_eq!(
        refused.state,
        RunState::Ended(parlor_model::RunOutcome::Refused("the turns of this day are used up".into()))
    );
    scene.hub.close().await;
}
