//! Questions and the clock: what counts is how long they were open, not what the clock says.

use crate::scene::Scene;
use parlor_model::{Decision, EntityKind, Refusal};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(20);
const DECIDED: Result<(), Refusal> = Err(Refusal::AlreadyExists(EntityKind::Approval));

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_neither_closes_a_question_nor_keeps_it_open() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    for (request, hours) in [("ahead", 2), ("back", -2), ("years", 87_600)] {
        scene.ask(request, LONG).await.unwrap();
        scene.clock.leap(hours);
        let approval = scene.approval(request).unwrap();
        scene.decide(&scene.bob, &approval, true).await.unwrap();
        assert_eq!(scene.gateway.hears(request).await, "allow", "{hours} h");
    }
    for (request, hours) in [("short, back", -2), ("short, ahead", 2)] {
        scene.ask(request, SHORT).await.unwrap();
        scene.clock.leap(hours);
        assert_eq!(scene.gateway.hears(request).await, "timeout", "{hours} h");
        let approval = scene.approval(request).unwrap();
        assert_eq!(approval.decision, Some(Decision::Expired));
        assert_eq!(scene.decide(&scene.bob, &approval, true).await, DECIDED);
    }
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_was_open_when_the_hub_went_is_over_and_its_gateway_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    scene.ask("1", LONG).await.unwrap();
    let scene = scene.restart(directory.path()).await;
    let approval = scene.approval("1").unwrap();
    assert_eq!(approval.decision, Some(Decision::Expired), "before anybody can answer");
    assert_eq!(scene.decide(&scene.ann, &approval, true).await, DECIDED);
    scene.gateway.come_back(&scene.hub, &scene.ann).await;
    assert_eq!(scene.gateway.hears("1").await, "timeout");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_while_the_gateway_was_away_waits_for_it_and_for_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    scene.ask("1", LONG).await.unwrap();
    scene.gateway.lose(&scene.hub).await;
    let approval = scene.approval("1").unwrap();
    scene.decide(&scene.ann, &approval, true).await.unwrap();
    scene.gateway.come_back_as(&scene.hub, &scene.ann, "another").await;
    scene.ask("2", LONG).await.unwrap();
    assert_eq!(scene.approval("2"), None, "it was asked through another gateway");
    scene.gateway.come_back(&scene.hub, &scene.ann).await;
    assert_eq!(scene.gateway.hears("1").await, "allow");
    assert_eq!(scene.gateway.heard().len(), 1);
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_used_again_brings_no_second_answer_and_none_for_another_input() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    scene.ask("1", LONG).await.unwrap();
    scene.ask("1", LONG).await.unwrap();
    assert_eq!(scene.ask_for("1", 2, LONG).await, DECIDED, "another input under the same name");
    let approval = scene.approval("1").unwrap();
    scene.decide(&scene.ann, &approval, true).await.unwrap();
    assert_eq!(scene.gateway.hears("1").await, "allow");
    scene.ask("1", LONG).await.unwrap();
    assert_eq!(scene.ask_for("1", 2, LONG).await, DECIDED, "the answer was to the first");
    scene.ask("last", SHORT).await.unwrap();
    scene.gateway.hears("last").await;
    assert_eq!(scene.gateway.heard().len(), 2);
    scene.hub.close().await;
}
