//! Timeouts of approvals: they depend on the elapsed time, not on the wall clock.

use crate::scene::Scene;
use parlor_model::{Decision, EntityKind, Refusal};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_millis(20);
const DECIDED: Result<(), Refusal> = Err(Refusal::AlreadyExists(EntityKind::Approval));

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_jump_neither_expires_an_approval_nor_keeps_it_open() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    for (request, hours) in [("ahead", 2), ("back", -2), ("years", 87_600)] {
        scene.ask(request, LONG).await.unwrap();
        scene.clock.jump(hours);
        let approval = scene.approval(request).unwrap();
        scene.decide(&scene.bob, &approval, true).await.unwrap();
        assert_eq!(scene.gateway.receives(request).await, "allow", "{hours} h");
    }
    for (request, hours) in [("short, back", -2), ("short, ahead", 2)] {
        scene.ask(request, SHORT).await.unwrap();
        scene.clock.jump(hours);
        assert_eq!(scene.gateway.receives(request).await, "timeout", "{hours} h");
        let approval = scene.approval(request).unwrap();
        assert_eq!(approval.decision, Some(Decision::Expired));
        assert_eq!(scene.decide(&scene.bob, &approval, true).await, DECIDED);
    }
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_open_at_a_restart_expires_and_its_gateway_receives_the_decision() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    scene.ask("1", LONG).await.unwrap();
    let scene = scene.restart(directory.path()).await;
    let approval = scene.approval("1").unwrap();
    assert_eq!(approval.decision, Some(Decision::Expired), "expired before any user can decide");
    assert_eq!(scene.decide(&scene.ann, &approval, true).await, DECIDED);
    scene.gateway.reconnect(&scene.hub, &scene.ann).await;
    assert_eq!(scene.gateway.receives("1").await, "timeout");
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_made_while_the_gateway_is_offline_waits_for_that_gateway_only() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    scene.ask("1", LONG).await.unwrap();
    scene.gateway.lose(&scene.hub).await;
    let approval = scene.approval("1").unwrap();
    scene.decide(&scene.ann, &approval, true).await.unwrap();
    scene.gateway.reconnect_as(&scene.hub, &scene.ann, "another").await;
    scene.ask("2", LONG).await.unwrap();
    assert_eq!(scene.approval("2"), None, "it was requested through another gateway");
    scene.gateway.reconnect(&scene.hub, &scene.ann).await;
    assert_eq!(scene.gateway.receives("1").await, "allow");
    assert_eq!(scene.gateway.received().len(), 1);
    scene.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reused_request_name_gets_no_second_decision_and_none_for_another_input() {
    let directory = tempfile::tempdir().unwrap();
    let scene = Scene::open(directory.path()).await;
    scene.ask("1", LONG).await.unwrap();
    scene.ask("1", LONG).await.unwrap();
    assert_eq!(scene.ask_for("1", 2, LONG).await, DECIDED, "another input under the same name");
    let approval = scene.approval("1").unwrap();
    scene.decide(&scene.ann, &approval, true).await.unwrap();
    assert_eq!(scene.gateway.receives("1").await, "allow");
    scene.ask("1", LONG).await.unwrap();
    assert_eq!(scene.ask_for("1", 2, LONG).await, DECIDED, "the decision was on the first input");
    scene.ask("last", SHORT).await.unwrap();
    scene.gateway.receives("last").await;
    assert_eq!(scene.gateway.received().len(), 2);
    scene.hub.close().await;
}
