//! Names that the grammar of the file forbids.

use super::BridgeScene;
use crate::scene::{following, heard};
use parlor_testkit::gateway::Gateway;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn names_with_spaces_slashes_and_other_characters_pass_in_both_directions() {
    let scene = BridgeScene::new().await;
    let mut gateway = Gateway::connect(&scene.ada, "laptop").await.unwrap();
    let agents = [
        ("a1", "Code Reviewer", "Code_u20_Reviewer"),
        ("a2", "research/analyst", "research__analyst"),
        ("a3", "Zoë 周", "Zo_ueb__u20__u5468_"),
        ("a4", "go-to-market", "go_u2d_to-market"),
        ("a5", "all", "_u61_ll"),
    ];
    for (id, name, _) in agents {
        gateway.register(id, name).await.unwrap();
        scene.add_agent(id).await;
    }
    let mut browser = following(&scene.eve, &scene.room).await;
    let bridge = scene.bridge().await;
    for (id, name, alias) in agents {
        scene.project.write(&format!("[script-to-{alias}]: are you there, {id}?\n"));
        assert_eq!(heard(&mut browser).await["mentions"], json!([name]));
        let turn = gateway.turn().await.unwrap();
        assert_eq!(turn["agentId"], id);
        gateway.complete(&turn, &format!("reply-{id}"), &format!("I am {id}")).await.unwrap();
        scene.project.wait_for(&format!("[{alias}-to-all]: I am {id}\n")).await;
        scene.project.write(&format!("[{alias}-to-eve]: through the file, {id}\n"));
        // The reply of the run is a `server:message_complete`, so this is the line.
        let posted = heard(&mut browser).await;
        assert_eq!((&posted["senderId"], &posted["senderName"]), (&json!(id), &json!(name)));
        scene.eve.post_message(&scene.room, &format!("@{name} thanks, {id}")).await.unwrap();
        scene.project.wait_for(&format!("[eve-to-{alias}]: @{name} thanks, {id}\n")).await;
        let turn = gateway.turn().await.unwrap();
        gateway.complete(&turn, &format!("end-{id}"), &format!("end of {id}")).await.unwrap();
        scene.project.wait_for(&format!("end of {id}\n")).await;
        heard(&mut browser).await;
    }
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn known_names_decide_where_a_line_is_split() {
    let scene = BridgeScene::new().await;
    let mut gateway = Gateway::connect(&scene.ada, "laptop").await.unwrap();
    gateway.register("a1", "ops").await.unwrap();
    scene.add_agent("a1").await;
    std::fs::create_dir(scene.project.path().join(".workplace/agents")).unwrap();
    std::fs::write(scene.project.path().join(".workplace/agents/back-to-back.md"), "").unwrap();
    let mut browser = following(&scene.eve, &scene.room).await;
    let bridge = scene.bridge().await;
    scene.project.write("[ops-to-back-to-back]: hello\n[back-to-back-to-ops]: hi\n");
    let first = heard(&mut browser).await;
    assert_eq!(
        (&first["senderName"], &first["metadata"]["relayed"]["recipient"]),
        (&json!("ops"), &json!("back-to-back"))
    );
    let second = heard(&mut browser).await;
    assert_eq!(
        (&second["senderName"], &second["mentions"]),
        (&json!("back-to-back (unverified)"), &json!(["ops"]))
    );
    bridge.stop().await;
    scene.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_two_owners_with_one_name_have_different_names_in_the_file() {
    let scene = BridgeScene::new().await;
    let mut of_ada = Gateway::connect(&scene.ada, "laptop").await.unwrap();
    of_ada.register("a1", "bot").await.unwrap();
    scene.add_agent("a1").await;
    let mut of_eve = Gateway::connect(&scene.eve, "server").await.unwrap();
    of_eve.register("e1", "bot").await.unwrap();
    let shared = scene.eve.put("/api/agents/e1", json!({ "visibility": "all" })).await.unwrap();
    assert_eq!(shared.status, 200, "{shared:?}");
    scene.add_agent("e1").await;
    let mut browser = following(&scene.eve, &scene.room).await;
    let bridge = scene.bridge().await;
    for (gateway, id, name) in [(&mut of_eve, "e1", "bot-eve"), (&mut of_ada, "a1", "bot")] {
        scene.project.write(&format!("[script-to-{name}]: are you there, {id}?\n"));
        assert_eq!(heard(&mut browser).await["mentions"], json!([name]));
        let turn = gateway.turn().await.unwrap();
        assert_eq!(turn["agentId"], id);
        gateway.complete(&turn, &format!("reply-{id}"), &format!("I am {id}")).await.unwrap();
        scene.project.wait_for(&format!("[{name}-to-all]: I am {id}\n")).await;
    }
    scene.project.write("[bot-to-eve]: through the file\n");
    let posted = heard(&mut browser).await;
    assert_eq!((&posted["senderId"], &posted["senderName"]), (&json!("a1"), &json!("bot")));
    bridge.stop().await;
    scene.scene.ends_well().await;
}
