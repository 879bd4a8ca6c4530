//! Tests of how a gateway authenticates, and how it verifies the certificate of the hub.

use super::{TestGateway, parlor, registered};
use crate::chatmd::Project;
use crate::gateway::scenes::Room;
use crate::scene::{PARLOR, PASSWORD, Scene, make_key};
use parlor_testkit::gateway_process::{ClientProcess, GatewayLauncher};
use parlor_testkit::hub::{ADMIN, HubCommand, PASSWORD as ADMINS_PASSWORD};
use parlor_testkit::rest::{RestClient, http_client};
use parlor_testkit::socket::TEST_TIMEOUT;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_works_from_the_environment_or_a_file_until_it_is_revoked() {
    let mut room = Room::start().await;
    let place = tempfile::tempdir().unwrap();
    let (id, key) = make_key(&room.alice, &["hosting"]).await;
    let file = place.path().join("key");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    let arguments = ["--key-file", file.to_str().unwrap(), "--agent", "echo=command", "--", "echo", "here"];
    let gateway_launcher =
        GatewayLauncher::with_arguments(PARLOR, place.path(), &arguments).at(room.scene.url());
    let mut gateway = gateway_launcher.start().await.unwrap();
    room.add(&registered(&room.alice, "echo").await).await;
    room.say("@echo where are you?").await;
    assert_eq!(room.reply().await["content"], "here\n");
    assert!(gateway.terminate().await.unwrap().success());

    let arguments = ["--agent", "echo=command", "--", "echo", "here again"];
    let gateway_launcher =
        GatewayLauncher::with_arguments(PARLOR, place.path(), &arguments).at(room.scene.url());
    let gateway_launcher = gateway_launcher.env("PARLOR_KEY", &key);
    let mut gateway = gateway_launcher.start().await.unwrap();
    registered(&room.alice, "echo").await;
    room.say("@echo and now?").await;
    assert_eq!(room.reply().await["content"], "here again\n");
    room.alice.delete(&format!("/api/keys/{id}")).await.unwrap().data().unwrap();
    gateway.printed(|line| line.contains("lost").then_some(())).await.unwrap();
    gateway.kill_9().await.unwrap();
    let mut gateway = gateway_launcher.spawn().unwrap();
    assert!(!gateway.ended().await.unwrap().success());
    assert!(gateway.output().contains("was it revoked?"), "{}", gateway.output());
    assert!(!gateway.output().contains(&key), "{}", gateway.output());
    room.scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_renewed_during_the_connection() {
    let settings = [("PARLOR_ACCESS_TOKEN_TTL", "30"), ("PARLOR_REFRESH_TOKEN_TTL", "600")];
    let mut room = Room::on(Scene::with(&settings).await).await;
    let hosted = TestGateway::new(room.scene.url(), &[("echo", "echo here")]);
    let gateway = hosted.join(&room, &["echo"]).await;
    // Alice signs in again, because her token has the same short lifetime as the gateway's.
    let alice = RestClient::sign_in(room.scene.url(), "alice", PASSWORD).await.unwrap();
    // There is no event for a renewal, so this polls. Only the gateway's sign-in is ever renewed.
    let renewed = async {
        loop {
            let sessions = alice.get("/api/auth/sessions").await.unwrap().data().unwrap();
            let used = |session: &Value| session["lastUsedAt"] != session["createdAt"];
            if sessions.as_array().unwrap().iter().any(used) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(28), renewed)
        .await
        .expect("the sign-in is renewed before it expires");
    room.say("@echo still there?").await;
    assert_eq!(room.reply().await["content"], "here\n");
    let output = gateway.output();
    assert_eq!((output.matches("connected").count(), output.contains("lost")), (1, false), "{output}");
    room.scene.ends_well().await;
}

/// Creates a CA and a hub certificate signed by it. Returns the paths of the CA and the hub certificate.
fn authority(place: &Path) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut about = CertificateParams::new(Vec::new()).unwrap();
    about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = about.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(about, key);
    let key = KeyPair::generate().unwrap();
    let hub = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().signed_by(&key, &issuer).unwrap();
    let files = ["ca.pem", "hub.pem", "hub.key"].map(|name| place.join(name).to_str().unwrap().to_owned());
    for (file, content) in files.iter().zip([own, hub.pem(), key.serialize_pem()]) {
        std::fs::write(file, content).unwrap();
    }
    let [ca, certificate, _] = files;
    (ca, certificate)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_a_private_ca_is_trusted_with_ca_file() {
    let place = tempfile::tempdir().unwrap();
    let (ca, certificate) = authority(place.path());
    let command = HubCommand::process(PARLOR, &place.path().join("hub"))
        .env("PARLOR_TLS_CERT", &certificate)
        .env("PARLOR_TLS_KEY", &certificate.replace("hub.pem", "hub.key"));
    let mut hub = command.start().await.unwrap();
    assert!(hub.url().starts_with("https://"), "{}", hub.url());
    let trusted = reqwest::Certificate::from_pem(&std::fs::read(&ca).unwrap()).unwrap();
    let http = http_client().tls_certs_only([trusted]).build().unwrap();
    let outsider = RestClient::outsider(hub.url()).with_http(http);
    let body = json!({ "username": ADMIN, "password": ADMINS_PASSWORD });
    let signed_in = outsider.post("/api/auth/login", body).await.unwrap().data().unwrap();
    let admin = outsider.with_token(signed_in["accessToken"].as_str().unwrap());

    let arguments = ["--user", ADMIN, "--agent", "echo=command", "--", "echo", "over TLS"];
    let gateway_launcher = GatewayLauncher::with_arguments(PARLOR, place.path(), &arguments).at(hub.url());
    let gateway_launcher = gateway_launcher.env("PARLOR_PASSWORD", ADMINS_PASSWORD);
    let mut untrusting = gateway_launcher.spawn().unwrap();
    assert!(!untrusting.ended().await.unwrap().success());
    let output = untrusting.output();
    assert!(output.contains("UnknownIssuer") && output.contains("--ca-file"), "{output}");

    let mut gateway = gateway_launcher.env("PARLOR_CA_FILE", &ca).start().await.unwrap();
    let agent = registered(&admin, "echo").await;
    let room = admin.make_room("kitchen", &[]).await.unwrap();
    let member = json!({ "memberId": agent, "memberType": "agent" });
    admin.post(&format!("/api/rooms/{room}/members"), member).await.unwrap().data().unwrap();
    answered(&admin, &room, "over TLS\n").await;
    assert!(gateway.terminate().await.unwrap().success());

    let project = Project::new();
    let (_, key) = make_key(&admin, &["read", "write", "agents"]).await;
    let arguments = [
        "bridge",
        project.path().to_str().unwrap(),
        "--room",
        &room,
        "--server",
        hub.url(),
        "--ca-file",
        &ca,
    ];
    let environment = [("PARLOR_KEY".to_owned(), key)];
    let mut bridge = ClientProcess::spawn(PARLOR.as_ref(), &arguments, &environment).unwrap();
    bridge.printed(|line| line.contains("connected").then_some(())).await.unwrap();
    admin.post_message(&room, "through a bridge").await.unwrap();
    project.wait_for("[admin-to-all]: through a bridge\n").await;
    assert!(bridge.terminate().await.unwrap().success());

    // `parlor join --ca-file` stores the certificate, so that the gateway does not need the file.
    let data = place.path().join("data");
    let code = admin.post("/api/pairing", json!({})).await.unwrap().data().unwrap();
    let code = code["code"].as_str().unwrap();
    let join = ["join", code, "--server", hub.url(), "--data", data.to_str().unwrap()];
    let (joined, printed) = parlor(&join).await;
    assert!(!joined && printed.contains("--ca-file"), "{printed}");
    let (joined, printed) = parlor(&[&join[..], &["--ca-file", &ca]].concat()).await;
    assert!(joined, "{printed}");
    std::fs::remove_file(&ca).unwrap();
    let arguments = ["--agent", "echo=command", "--", "echo", "by the key"];
    let mut gateway =
        GatewayLauncher::with_arguments(PARLOR, place.path(), &arguments).start().await.unwrap();
    registered(&admin, "echo").await;
    answered(&admin, &room, "by the key\n").await;
    assert!(gateway.terminate().await.unwrap().success());
    hub.stop(TEST_TIMEOUT).await.unwrap();
}

/// Mentions the agent and waits for this answer. It polls the history, because the test WebSocket client has
/// no TLS.
async fn answered(person: &RestClient, room: &str, expected: &str) {
    person.post_message(room, "@echo who is there?").await.unwrap();
    let found = async {
        loop {
            let history = person.history(room).await.unwrap();
            if history.iter().any(|message| message["content"] == expected) {
                return;
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, found).await.expect("the agent answers");
}
