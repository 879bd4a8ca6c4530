//! Fixtures for the tests of commands on approvals.

use crate::commands::test_fixtures::{self, auth};
use crate::permission::DecidableApproval;
use parlor_model::{
    AgentId, Approval, ApprovalId, ApprovalRule, ApprovalSubject, Frozen, GatewayId, InputDigest, Payload,
    Room, RoomId, RunId, RunPlace, Time, UserId,
};
use std::sync::Arc;

pub fn room() -> Room {
    test_fixtures::room(&RoomId::stored("room"))
}

pub fn frozen_room() -> Room {
    Room { frozen: Some(Frozen { by: None, at: Time(1) }), ..room() }
}

/// An open approval that the agent `coder` requested during the run `run`.
pub fn open() -> Approval {
    Approval {
        id: ApprovalId::stored("new"),
        run: RunId::stored("run"),
        place: RunPlace::Room(room().id),
        agent: AgentId::stored("coder"),
        agent_name: "coder".into(),
        gateway: GatewayId::stored("g"),
        request: "1".into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload(r#"{"command":"ls"}"#.into())),
        digest: InputDigest([1; 32]),
        asked_at: Time(1),
        expires_at: Time(2),
        decision: None,
        decided_at: None,
    }
}

pub fn rule() -> ApprovalRule {
    let (agent, by) = (AgentId::stored("coder"), UserId::stored("bob"));
    ApprovalRule { room: room().id, agent, tool: "Bash".into(), by, at: Time(1) }
}

/// The user `ann` decides on an approval in this room.
pub fn decidable(approval: Approval, room: Room) -> DecidableApproval {
    DecidableApproval { caller: auth("ann"), room: Some(Arc::new(room)), approval }
}
