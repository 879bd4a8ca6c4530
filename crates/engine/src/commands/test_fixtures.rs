//! Fixtures for the tests of single commands: hand-made evidence, and a builder with fixed time and ids.

use super::Command;
use crate::Limits;
use crate::decide::test_fixtures::{FixedId, NOW, mail, user};
use crate::effects::{Effects, EffectsBuilder};
use crate::facts::AuthContext;
use crate::permission::CallerContext;
use parlor_model::command::AgentRegistration;
use parlor_model::{
    AgentId, AnswerPolicy, Caller, DeliveryState, Destination, Device, Epoch, Gateway, GatewayId, Member,
    MemberId, Message, Position, Refusal, Room, RoomId, RoomKind, RoomRole, Seq, Time, UserId,
};
use std::sync::Arc;

/// Decides a command with these facts, after the event with `Seq` 10.
pub fn decide<C: Command>(command: C, facts: C::Facts) -> Result<(C::Receipt, Effects), Refusal> {
    let (head, limits) = (Position { epoch: Epoch(1), seq: Seq(10) }, Limits::default());
    let caller = CallerContext { caller: Caller::ANONYMOUS, auth: None };
    let mut effects = EffectsBuilder::new(NOW, head, &caller, &FixedId, &limits);
    let receipt = command.decide(facts, &mut effects)?;
    Ok((receipt, effects.finish()))
}

/// Auth context of a user with a sign-in.
pub fn auth(name: &str) -> Arc<AuthContext> {
    Arc::new(AuthContext { user: user(name).into(), scopes: None })
}

pub fn member_of(room: &RoomId, name: &str) -> Arc<Member> {
    Arc::new(Member {
        room: room.clone(),
        member: MemberId::User(UserId::stored(name)),
        role: RoomRole::Member,
        role_description: None,
        name: name.into(),
        handle: name.into(),
        joined_at: Time(2),
        read_through: Seq(0),
        read_at: None,
        room_preferences: Default::default(),
    })
}

/// A message of a source in a room.
pub fn room_message(room: &RoomId) -> Arc<Message> {
    let (message, _) = mail("m", "coder", DeliveryState::Pending, 0);
    Arc::new(Message { destination: Destination::Room(room.clone()), ..Message::clone(&message) })
}

/// A gateway of the user `ann`.
pub fn gateway(id: &str, disconnected_at: Option<Time>) -> Gateway {
    Gateway {
        id: GatewayId::stored(id),
        owner: UserId::stored("ann"),
        device: Device::default(),
        ephemeral: false,
        connected_at: Time(1),
        disconnected_at,
        pending_removals: Vec::new(),
    }
}

/// A registration of the agent `coder` by the gateway `laptop`.
pub fn registration() -> AgentRegistration {
    AgentRegistration {
        gateway: GatewayId::stored("laptop"),
        id: AgentId::stored("coder"),
        name: "Coder".into(),
        kind: "my-own-adapter".into(),
        working_directory: Some("/srv/ann".into()),
        capabilities: vec!["rewind".into()],
        model: None,
        slash_commands: None,
        mcp_servers: None,
    }
}

/// A room in which every member may approve tools and command agents.
pub fn room(id: &RoomId) -> Room {
    Room {
        id: id.clone(),
        name: "Room".into(),
        kind: RoomKind::Group,
        policy: AnswerPolicy::Mention,
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: None,
        project_root: None,
        created_by: UserId::stored("ann"),
        created_at: Time(1),
        updated_at: Time(1),
    }
}
