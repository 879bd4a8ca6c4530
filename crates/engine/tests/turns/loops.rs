//! Agents that send messages to each other in their turns: each loop ends, and the message beyond the limit is a dead
//! letter with the reason.

use crate::scene::{SINGLE, Scene, agent, go};
use parlor_engine::Limits;
use parlor_model::{MessageId, RunOutcome, TurnDecisionKind};
use std::time::Duration;

const AGENTS: [&str; 5] = ["a", "b", "c", "d", "e"];

async fn agents(scene: &Scene) {
    for id in AGENTS {
        scene.agent(id, &[]).await;
    }
}

fn reasons(scene: &Scene) -> Vec<(MessageId, String)> {
    let letters = scene.dead_letters().into_iter();
    letters.map(|letter| (letter.message.id.clone(), letter.reason.into())).collect()
}

#[tokio::test]
async fn a_chain_of_agents_stops_at_the_depth_limit() {
    let mut scene = Scene::with(Limits { chain_depth: 3, ..Limits::default() }).await;
    agents(&scene).await;
    let mut runs = Vec::new();
    // The message that starts the chain is sent outside of a run.
    for (from, to) in [("e", "a"), ("a", "b"), ("b", "c")] {
        let message = scene.send(from, to).await;
        let run = scene.begin(to, &[&message]).await;
        let stored = scene.run(&run).unwrap();
        assert_eq!((stored.asked_by, stored.lineage.depth), (Some(agent(from)), runs.len() as u32));
        runs.push(run);
    }
    let chain = scene.run(&runs[2]).unwrap().lineage;
    assert_eq!(chain.chain, ["a", "b", "c"].map(agent));
    assert_eq!(chain.conversation, scene.run(&runs[0]).unwrap().lineage.conversation);

    let beyond = scene.send("c", "d").await;
    let receipt = scene.decide("d", &[&beyond], go()).await;
    assert_eq!((receipt.run, receipt.messages), (None, 0));
    assert_eq!(reasons(&scene), [(beyond.clone(), "the chain of agents is too long".to_owned())]);
    assert_eq!(scene.kinds("d"), ["dead_lettered"]);
    assert_eq!(scene.decisions("d")[0].messages, [beyond]);
    scene.close().await;
}

#[tokio::test]
async fn an_agent_takes_part_in_a_chain_once() {
    let mut scene = Scene::start().await;
    agents(&scene).await;
    let first = scene.send("a", "b").await;
    scene.begin("b", &[&first]).await;
    let back = scene.send("b", "a").await;
    scene.begin("a", &[&back]).await;
    let [again, to_itself] = [scene.send("a", "b").await, scene.send("a", "a").await];
    for (of, message) in [("b", &again), ("a", &to_itself)] {
        assert_eq!(scene.decide(of, &[message], go()).await.run, None);
        let reason = "the agent has spoken in this chain already";
        assert!(reasons(&scene).contains(&(message.clone(), reason.to_owned())), "{of}");
    }
    scene.close().await;
}

#[tokio::test]
async fn messages_sent_after_the_run_are_limited_by_the_turns_of_the_pair() {
    let limits = Limits { pair_turns: 2, pair_window: Duration::from_secs(60), ..Limits::default() };
    let mut scene = Scene::with(limits).await;
    agents(&scene).await;
    let turn = async |from: &str, to: &str| {
        // The runs of the sender have ended before the message is sent.
        scene.clock.advance(Duration::from_secs(1));
        let message = scene.send(from, to).await;
        let run = scene.decide(to, &[&message], go()).await.run;
        if let Some(run) = &run {
            assert_eq!(scene.run(run).unwrap().lineage.depth, 0, "a new chain");
            scene
                .must(&parlor_model::Caller::OPERATOR, parlor_model::command::StartRun { run: run.clone() })
                .await;
            scene.end(run, RunOutcome::Complete).await;
        }
        run.is_some()
    };
    for _ in 0..2 {
        assert!(turn("a", "b").await);
        assert!(turn("b", "a").await, "the other direction has a limit of its own");
    }
    assert!(!turn("a", "b").await);
    let [(_, reason)] = &reasons(&scene)[..] else { panic!("one dead letter") };
    assert_eq!(reason, "these two agents talk to each other too often");
    assert!(turn("c", "b").await, "another sender");
    scene.clock.advance(Duration::from_secs(60));
    assert!(turn("a", "b").await, "the window has passed");
    scene.close().await;
}

#[tokio::test]
async fn two_agents_with_automatic_turns_that_answer_every_message_come_to_an_end() {
    let mut scene = Scene::start().await;
    for id in ["a", "b"] {
        scene.agent(id, &[("autoRun", SINGLE)]).await;
        scene.online(id).await;
    }
    let mut last = scene.send("a", "b").await;
    // Each program sends one message to the other agent, then completes.
    for (number, (own, other)) in [("b", "a"), ("a", "b")].into_iter().enumerate() {
        let run = scene.starts(number).await;
        assert_eq!(run.agent, agent(own));
        last = scene.send(own, other).await;
        scene.end(&run.id, RunOutcome::Complete).await;
    }
    scene.decided("b", TurnDecisionKind::DeadLettered, 1).await;
    assert_eq!(reasons(&scene), [(last, "the agent has spoken in this chain already".to_owned())]);
    assert_eq!(scene.started(), 2);
    scene.close().await;
}
