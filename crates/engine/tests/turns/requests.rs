//! Requests for a turn that a caller must not make: agents and mail of others, inputs beyond the limits, and programs
//! without the permission.

use crate::scene::{Scene, agent, is_missing, owner};
use parlor_model::command::{CreateKey, TriggerTurn, TurnInput};
use parlor_model::{
    AgentCredential, Caller, DeliveryState, MessageId, Refusal, Scope, SecretHash, SessionId, Time,
};
use std::sync::Arc;

fn trigger(of: &str, input: TurnInput) -> TriggerTurn {
    TriggerTurn { agent: agent(of), session: SessionId::main(), input }
}

fn mail(messages: &[&MessageId]) -> TurnInput {
    TurnInput::Mail(messages.iter().copied().cloned().collect())
}

fn prompt(text: &str) -> TurnInput {
    TurnInput::Prompt(text.into())
}

/// A hub on which Ann has the agents `lead` and `coder`, and a message for `coder`.
async fn scene() -> (Scene, MessageId) {
    let scene = Scene::start().await;
    scene.agent("lead", &[]).await;
    scene.agent("coder", &[]).await;
    let message = scene.send("lead", "coder").await;
    (scene, message)
}

async fn refusal(scene: &Scene, caller: &Caller, command: TriggerTurn) -> Refusal {
    scene.hub().execute(caller, command).await.expect_err("the turn is refused")
}

#[tokio::test]
async fn an_agent_of_another_user_does_not_exist() {
    let (mut scene, message) = scene().await;
    for (of, input) in [("coder", mail(&[])), ("coder", mail(&[&message])), ("never", mail(&[]))] {
        assert!(is_missing(scene.hub().execute(&scene.bob, trigger(of, input)).await), "{of}");
    }
    assert_eq!(refusal(&scene, &Caller::ANONYMOUS, trigger("coder", mail(&[]))).await, Refusal::NotSignedIn);
    assert_eq!(scene.copy("coder", &message).unwrap().state, DeliveryState::Pending);
    assert_eq!(scene.kinds("coder"), [""; 0]);
    scene.close().await;
}

#[tokio::test]
async fn messages_of_other_mailboxes_and_repeated_ids_are_left_out() {
    let (mut scene, message) = scene().await;
    scene.agent("writer", &[]).await;
    let foreign = scene.send("lead", "writer").await;
    let invalid = |refusal: Refusal| matches!(refusal, Refusal::Invalid(_));
    assert!(invalid(refusal(&scene, &scene.ann, trigger("coder", mail(&[&foreign]))).await));
    let side = TriggerTurn { session: SessionId::stored("side"), ..trigger("coder", mail(&[&message])) };
    assert!(invalid(refusal(&scene, &scene.ann, side).await), "the mail of `main` is not that of `side`");
    let input = mail(&[&message, &foreign, &message, &MessageId::stored("never")]);
    let receipt = scene.must(&scene.ann, trigger("coder", input)).await;
    assert_eq!(receipt.messages, 1);
    assert_eq!(scene.copy("coder", &message).unwrap().state, DeliveryState::HELD);
    assert_eq!(scene.copy("writer", &foreign).unwrap().state, DeliveryState::Pending);
    assert!(invalid(refusal(&scene, &scene.ann, trigger("coder", mail(&[&message]))).await), "it is held");
    scene.close().await;
}

#[tokio::test]
async fn inputs_beyond_the_limits_are_refused() {
    let (mut scene, message) = scene().await;
    for input in [mail(&[&message; 101]), prompt(""), prompt(" \n"), prompt(&"x".repeat(100_001))] {
        let refused = refusal(&scene, &scene.ann, trigger("coder", input)).await;
        assert!(matches!(refused, Refusal::Invalid(_)), "{refused:?}");
    }
    scene.must(&scene.ann, trigger("coder", prompt(&"\u{1f980}".repeat(100_000)))).await;
    scene.close().await;
}

#[tokio::test]
async fn a_session_has_a_limited_number_of_waiting_turns() {
    let (mut scene, _) = scene().await;
    for _ in 0..20 {
        scene.must(&scene.ann, trigger("coder", prompt("go"))).await;
    }
    let refused = refusal(&scene, &scene.ann, trigger("coder", prompt("go"))).await;
    assert!(matches!(refused, Refusal::Invalid(_)), "{refused:?}");
    let side = TriggerTurn { session: SessionId::stored("side"), ..trigger("coder", prompt("go")) };
    scene.must(&scene.ann, side).await;
    scene.close().await;
}

#[tokio::test]
async fn a_key_needs_the_scope_agents_and_a_token_of_an_agent_starts_no_turn() {
    let (mut scene, message) = scene().await;
    let key = async |number: u8, scopes: Vec<Scope>| {
        let (name, secret) = ("script".into(), SecretHash([number; 32]));
        let key = scene.must(&scene.ann, CreateKey { owner: None, name, scopes, secret }).await;
        Caller::program(owner(&scene.ann), key.id.clone())
    };
    let without = key(1, vec![Scope::Read, Scope::Write, Scope::Hosting]).await;
    let refused = refusal(&scene, &without, trigger("coder", mail(&[]))).await;
    assert_eq!(refused, Refusal::Forbidden);
    let credential = AgentCredential {
        owner: owner(&scene.ann),
        agent: agent("coder"),
        session: Some(SessionId::main()),
        run: None,
        issued_at: scene.hub().now(),
        expires_at: Time(i64::MAX),
    };
    let token = Caller::agent(Arc::new(credential));
    refusal(&scene, &token, trigger("coder", mail(&[&message]))).await;
    refusal(&scene, &token, trigger("coder", prompt("go"))).await;
    assert_eq!(scene.kinds("coder"), [""; 0]);
    let with = key(2, vec![Scope::Agents]).await;
    assert_eq!(scene.must(&with, trigger("coder", mail(&[]))).await.messages, 1);
    scene.close().await;
}
