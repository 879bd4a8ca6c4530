//! A room with people and agents in it.

use crate::scene::{Scene, following};
use parlor_testkit::agentim::Client;
use parlor_testkit::gateway::Gateway;
use parlor_testkit::rest::RestClient;
use serde_json::{Value, json};

pub struct Room {
    pub scene: Scene,
    pub alice: RestClient,
    pub bob: RestClient,
    pub room: String,
    pub at_alice: Client,
    said: u32,
}

impl Room {
    /// Alice's room with Bob in it.
    pub async fn start() -> Self {
        Self::on(Scene::start().await).await
    }

    pub async fn on(scene: Scene) -> Self {
        let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
        let room = alice.make_room("kitchen", &[&bob]).await.unwrap();
        let at_alice = following(&alice, &room).await;
        Self { scene, alice, bob, room, at_alice, said: 0 }
    }

    /// A gateway of Alice's with these agents, each a member of the room.
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

    pub async fn say(&mut self, text: &str) -> String {
        self.said += 1;
        let id = format!("c{}", self.said);
        self.at_alice.say_and_wait(&self.room, text, &id).await.unwrap().message_id
    }

    /// Waits for the next completed reply.
    pub async fn reply(&mut self) -> Value {
        self.at_alice.wait_for_type("server:message_complete").await.unwrap()["message"].clone()
    }

    /// Why agents did or did not answer a message: agent, state and reason.
    pub async fn deliveries(&self, message: &str) -> Vec<Value> {
        let path = format!("/api/messages/{message}/deliveries");
        self.alice.get(&path).await.unwrap().data().unwrap().as_array().unwrap().clone()
    }
}
