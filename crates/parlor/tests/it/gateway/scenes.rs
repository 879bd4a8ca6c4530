//! Test fixture: a room with two users and the agents of a gateway.

use crate::scene::{Scene, following};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

/// A room with the members Alice and Bob on a hub of its own.
pub struct Room {
    pub scene: Scene,
    pub alice: RestClient,
    pub bob: RestClient,
    pub room: String,
    /// Alice's connection, which follows the room.
    pub at_alice: Client,
    message_count: u32,
}

impl Room {
    /// A room on a new hub without rate limits.
    pub async fn start() -> Self {
        Self::on(Scene::start().await).await
    }

    pub async fn on(scene: Scene) -> Self {
        let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
        let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
        let at_alice = following(&alice, &room).await;
        Self { scene, alice, bob, room, at_alice, message_count: 0 }
    }

    /// Connects a gateway owned by Alice, registers these agents and adds each of them to the room.
    pub async fn gateway(&self, id: &str, agents: &[&str]) -> Gateway {
        let mut gateway = Gateway::connect(&self.alice, id).await.unwrap();
        for agent in agents {
            gateway.register(agent, agent).await.unwrap();
        }
        for agent in agents {
            self.add(agent).await;
            let context = gateway
                .wait_for(parlor_testkit::socket::TEST_TIMEOUT, |frame| {
                    frame["type"] == "server:room_context" && frame["agentId"] == *agent
                })
                .await;
            context.unwrap();
        }
        gateway
    }

    pub async fn add(&self, agent: &str) {
        let path = format!("/api/rooms/{}/members", self.room);
        let body = json!({ "memberId": agent, "memberType": "agent" });
        let answer = self.alice.post(&path, body).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    }

    /// Posts a message as Alice and returns its id.
    pub async fn say(&mut self, text: &str) -> String {
        self.message_count += 1;
        let id = format!("c{}", self.message_count);
        self.at_alice.say_and_wait(&self.room, text, &id).await.unwrap().message_id
    }

    /// Waits for the next completed reply.
    pub async fn reply(&mut self) -> Value {
        self.at_alice.wait_for_type("server:message_complete").await.unwrap()["message"].clone()
    }

    /// The deliveries of a message: for each agent its status and, if it was refused or failed, the reason.
    pub async fn deliveries(&self, message: &str) -> Vec<Value> {
        let path = format!("/api/messages/{message}/deliveries");
        self.alice.get(&path).await.unwrap().data().unwrap().as_array().unwrap().clone()
    }
}
