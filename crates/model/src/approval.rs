//! A question to people that an agent waits for: may it use this tool, with this input? Or: which of these?
//!
//! Owns: decided or expired, exactly once.

use crate::{AgentId, ApprovalId, GatewayId, IllegalTransition, Payload, RoomId, RunId, Time, UserId};
use std::fmt;
use std::time::Duration;

/// Nobody waits longer for an answer.
pub const MAX_APPROVAL_WAIT: Duration = Duration::from_secs(300);

/// SHA-256 of exactly what was asked, so that what is shown and what is run are the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InputDigest(pub [u8; 32]);

impl InputDigest {
    /// As it is written: 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub id: ApprovalId,
    pub run: RunId,
    pub room: RoomId,
    pub agent: AgentId,
    /// As it was called when it asked.
    pub agent_name: Box<str>,
    /// Through which it asked; no other is told the answer.
    pub gateway: GatewayId,
    /// What the gateway calls the question.
    pub request: Box<str>,
    /// The tool that asks, where it asks for answers.
    pub tool: Box<str>,
    pub kind: ApprovalKind,
    pub input: Payload,
    pub digest: InputDigest,
    pub asked_at: Time,
    /// As told to people; what counts is a clock that cannot be set.
    pub expires_at: Time,
    pub decision: Option<Decision>,
    pub decided_at: Option<Time>,
}

/// What an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalKind {
    /// Whether a tool may be used: yes or no.
    Tool,
    /// What people say to one to four questions.
    Questions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allowed {
        by: Decider,
    },
    /// By an earlier answer that was meant for always.
    AllowedByRule,
    Denied {
        by: Decider,
        reason: Option<Box<str>>,
    },
    /// What somebody said to questions, in the form in which they were asked.
    Answered {
        by: Decider,
        answers: Payload,
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
            Self::Answered { .. } => "answered",
            Self::Expired => "timeout",
        }
    }
}

/// Who decided, with the name of that day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decider {
    pub user: UserId,
    pub name: Box<str>,
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
    /// How long the question is open. Both times come from one look at the clock, so that setting it changes nothing.
    pub fn open_for(&self) -> Duration {
        Duration::from_micros(self.expires_at.0.saturating_sub(self.asked_at.0).max(0).unsigned_abs())
    }

    pub fn decided(&self, decision: Decision, now: Time) -> Result<Self, IllegalTransition> {
        match self.decision {
            None => Ok(Self { decision: Some(decision), decided_at: Some(now), ..self.clone() }),
            Some(_) => Err(IllegalTransition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_in_64_digits() {
        let digest = InputDigest(std::array::from_fn(|place| place as u8 * 7));
        assert_eq!(InputDigest::parse(&digest.to_string()), Some(digest));
        assert_eq!(InputDigest::parse(&digest.to_string().to_uppercase()), Some(digest));
        for odd in ["", "00", &"+1".repeat(32), &"é".repeat(32), &"00".repeat(33)] {
            assert_eq!(InputDigest::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_first_decision_is_the_only_one() {
        let pending = Approval {
            id: ApprovalId::stored("a"),
            run: RunId::stored("r"),
            room: RoomId::stored("room"),
            agent: AgentId::stored("coder"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "Bash".into(),
            kind: ApprovalKind::Tool,
            input: Payload("{}".into()),
            digest: InputDigest([0; 32]),
            asked_at: Time(1),
            expires_at: Time(2),
            decision: None,
            decided_at: None,
        };
        let by = Decider { user: UserId::stored("ann"), name: "Ann".into() };
        let answers = [
            Decision::Allowed { by: by.clone() },
            Decision::AllowedByRule,
            Decision::Denied { by: by.clone(), reason: None },
            Decision::Answered { by, answers: Payload("[]".into()) },
            Decision::Expired,
            Decision::Withdrawn,
        ];
        for first in &answers {
            let decided = pending.decided(first.clone(), Time(2)).unwrap();
            for second in &answers {
                assert_eq!(
                    decided.decided(second.clone(), Time(3)),
                    Err(IllegalTransition),
                    "{first:?} then {second:?}"
                );
            }
        }
    }
}
