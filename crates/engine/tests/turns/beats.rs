//! Heartbeats through the whole hub, with a clock that the test sets.

use crate::scene::{Scene, agent, until};
use parlor_model::command::{AgentProfile, ChangeAgent, ReceiveMail, RemoveAgent};
use parlor_model::{Mailbox, Payload};
use std::time::Duration;

const HOURLY: (&str, &str) = ("heartbeat", "\"0 * * * *\"");
const HOUR: Duration = Duration::from_secs(3600);

/// Number of pending messages in the agent's own mailbox.
fn pending(scene: &Scene, of: &str) -> usize {
    let (mailbox, now) = (Mailbox::of(agent(of)), scene.hub().now());
    scene.read(|store| store.pending(&mailbox, now, 100)).len()
}

/// Moves the clock. The driver looks at it when settings change: a change of another agent has it look now.
async fn advance(scene: &Scene, by: Duration) {
    scene.clock.advance(by);
    look(scene).await;
}

async fn look(scene: &Scene) {
    let profile =
        AgentProfile { settings: vec![("n".into(), Payload("1".into()))], ..AgentProfile::default() };
    scene.must(&scene.ann, ChangeAgent { id: agent("other"), profile }).await;
}

/// Waits until a heartbeat of this agent is pending: the driver has then looked at the clock.
async fn beaten(scene: &Scene, of: &str) {
    until(async || pending(scene, of) == 1).await;
}

async fn take(scene: &Scene, of: &str) -> usize {
    let mailbox = Mailbox::of(agent(of));
    scene.must(&scene.ann, ReceiveMail { mailbox, limit: 100, lease: None }).await.len()
}

/// A hub with the agent `timed` that has a heartbeat, `canary` with the same one, and `other`. The heartbeats are
/// scheduled.
async fn scene() -> Scene {
    let scene = Scene::start().await;
    scene.agent("other", &[]).await;
    // Ordered by their ids: a heartbeat of `timed` is sent before that of `zz-canary`.
    for id in ["timed", "zz-canary"] {
        scene.agent(id, &[HOURLY]).await;
    }
    scheduled(&scene).await;
    scene
}

/// Waits until the driver has read the heartbeats: each look at the clock an hour later yields one.
async fn scheduled(scene: &Scene) {
    until(async || {
        advance(scene, HOUR).await;
        pending(scene, "timed") == 1 && pending(scene, "zz-canary") == 1
    })
    .await;
}

#[tokio::test]
async fn a_heartbeat_is_sent_once_while_one_is_pending_and_again_afterwards() {
    let mut scene = scene().await;
    let (mailbox, now) = (Mailbox::of(agent("timed")), scene.hub().now());
    let mail = scene.read(|store| store.pending(&mailbox, now, 9));
    let (message, _) = &mail[0];
    assert_eq!((message.command.as_deref(), &*message.sender_name), (Some("heartbeat"), "system/heartbeat"));
    for _ in 0..3 {
        // The canary's heartbeat is taken, so that the next one shows that the driver has sent those that are due.
        assert_eq!(take(&scene, "zz-canary").await, 1);
        advance(&scene, HOUR).await;
        beaten(&scene, "zz-canary").await;
        assert_eq!(pending(&scene, "timed"), 1, "the first one is still pending");
    }
    assert_eq!(take(&scene, "timed").await, 1);
    advance(&scene, HOUR).await;
    beaten(&scene, "timed").await;
    scene.close().await;
}

#[tokio::test]
async fn a_removed_agent_has_no_heartbeat_and_an_agent_with_its_id_gets_none() {
    let mut scene = scene().await;
    scene.must(&scene.ann, RemoveAgent { id: agent("timed") }).await;
    scene.agent("timed", &[]).await;
    assert_eq!(take(&scene, "zz-canary").await, 1);
    advance(&scene, HOUR).await;
    beaten(&scene, "zz-canary").await;
    assert_eq!(pending(&scene, "timed"), 0);
    scene.close().await;
}

#[tokio::test]
async fn times_that_passed_while_the_hub_was_stopped_are_not_made_up_for() {
    let mut scene = scene().await;
    // The driver of a hub that has just started owes no heartbeat of the time before.
    scene.restart().await;
    for id in ["timed", "zz-canary"] {
        assert_eq!(take(&scene, id).await, 1);
    }
    scene.close().await;
    scene.clock.advance(48 * HOUR + Duration::from_secs(1));
    scene.restart().await;
    // Shows that the driver has read the heartbeats and has looked at the clock since, within the same hour.
    scene.agent("fresh", &[("heartbeat", "\"* * * * *\"")]).await;
    until(async || {
        advance(&scene, Duration::from_secs(1)).await;
        pending(&scene, "fresh") == 1
    })
    .await;
    assert_eq!((pending(&scene, "timed"), pending(&scene, "zz-canary")), (0, 0));
    scheduled(&scene).await;
    scene.close().await;
}
