//! A question to people that an agent waits for: may it use this tool, with this input?
//!
//! Owns: decided or expired, exactly once.

use crate::{AgentId, ApprovalId, Illegal, Payload, RoomId, RunId, Time, UserId};

/// SHA-256 of exactly what was asked, so that what is shown and what is run are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    pub run: RunId,
    pub room: RoomId,
    pub agent: AgentId,
    /// What the agent's own side calls the question.
    pub request: Box<str>,
    pub tool: Box<str>,
    pub input: Payload,
    pub digest: Digest,
    pub asked_at: Time,
    /// As told to people; what counts is a clock that cannot be set.
    pub expires_at: Time,
    pub decision: Option<Decision>,
    pub decided_at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allowed {
        by: UserId,
    },
    /// By an earlier answer that was meant for always.
    AllowedByRule,
    Denied {
        by: UserId,
        reason: Option<Box<str>>,
    },
    Expired,
    /// The run ended before anybody answered.
    Withdrawn,
}

impl Decision {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allowed { .. } | Self::AllowedByRule => "allow",
            Self::Denied { .. } | Self::Withdrawn => "deny",
            Self::Expired => "timeout",
        }
    }
}

/// An answer that was meant for always: for this agent, this tool and this room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    pub room: RoomId,
    pub agent: AgentId,
    pub tool: Box<str>,
    pub by: UserId,
    pub at: Time,
}

impl Approval {
    pub fn decided(&self, decision: Decision, now: Time) -> Result<Self, Illegal> {
        match self.decision {
            None => Ok(Self { decision: Some(decision), decided_at: Some(now), ..self.clone() }),
            Some(_) => Err(Illegal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_is_the_only_one() {
        let pending = Approval {
            id: ApprovalId::stored("a"),
            run: RunId::stored("r"),
            room: RoomId::stored("room"),
            agent: AgentId::stored("coder"),
            request: "1".into(),
            tool: "Bash".into(),
            input: Payload("{}".into()),
            digest: Digest([0; 32]),
            asked_at: Time(1),
            expires_at: Time(2),
            decision: None,
            decided_at: None,
        };
        let by = UserId::stored("ann");
        let answers = [
            Decision::Allowed { by: by.clone() },
            Decision::AllowedByRule,
            Decision::Denied { by, reason: None },
            Decision::Expired,
            Decision::Withdrawn,
        ];
        for first in &answers {
            let decided = pending.decided(first.clone(), Time(2)).unwrap();
            for second in &answers {
                assert_eq!(
                    decided.decided(second.clone(), Time(3)),
                    Err(Illegal),
                    "{first:?} then {second:?}"
                );
            }
        }
    }
}
