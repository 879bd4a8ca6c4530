//! Approvals: a permission request or question set of an agent, decided once by a user.
//!
//! Owns: the transition from open to decided, expired or withdrawn, which happens exactly once.

use crate::run_event::{Question, QuestionAnswer};
use crate::{
    AgentId, ApprovalId, GatewayId, IllegalTransition, Payload, RoomId, RunId, RunPlace, Time, UserId,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Maximum time that an approval stays open before it expires.
pub const MAX_APPROVAL_WAIT: Duration = Duration::from_secs(300);

/// SHA-256 of the tool input or the questions of an approval. It ties a decision to the input that the user saw.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest(pub [u8; 32]);

impl InputDigest {
    /// Parses 64 hexadecimal digits, in upper or lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
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
        write!(f, "InputDigest({self})")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub run: RunId,
    /// Place of the run. Without a room, the owner of the agent decides.
    pub place: RunPlace,
    pub agent: AgentId,
    /// Name of the agent at the time of the request.
    pub agent_name: Box<str>,
    /// Gateway that sent the request, and the only one that receives the decision.
    pub gateway: GatewayId,
    /// Request id chosen by the gateway.
    pub request: Box<str>,
    /// Tool to be permitted or, for [`ApprovalKind::Questions`], the tool that asks the questions.
    pub tool: Box<str>,
    pub subject: ApprovalSubject,
    pub digest: InputDigest,
    pub asked_at: Time,
    /// Expiry shown to users. The hub expires the approval by a monotonic clock.
    pub expires_at: Time,
    pub decision: Option<Decision>,
    pub decided_at: Option<Time>,
}

/// Subject of an approval: the input of a tool, or questions to users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalSubject {
    /// Input of the tool, as sent by the agent.
    Tool(Payload),
    Questions(Vec<Question>),
}

impl ApprovalSubject {
    pub fn kind(&self) -> ApprovalKind {
        match self {
            Self::Tool(_) => ApprovalKind::Tool,
            Self::Questions(_) => ApprovalKind::Questions,
        }
    }

    /// Returns the bytes of the tool input, or of all texts of the questions.
    pub fn length(&self) -> usize {
        match self {
            Self::Tool(input) => input.0.len(),
            Self::Questions(questions) => questions.iter().map(Question::length).sum(),
        }
    }
}

/// Kind of decision that an approval requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalKind {
    /// Allow or deny the use of a tool.
    Tool,
    /// Answer one to four questions.
    Questions,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    Allowed {
        by: Decider,
    },
    /// Allowed without asking, because an [`ApprovalRule`] matches.
    AllowedByRule,
    Denied {
        by: Decider,
        reason: Option<Box<str>>,
    },
    Answered {
        by: Decider,
        answers: Vec<QuestionAnswer>,
    },
    /// The timeout passed without a decision. Default deny: the tool is not run.
    Expired,
    /// The run ended before a decision.
    Withdrawn,
}

/// The user who decided, with their name at that time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    pub user: UserId,
    pub name: Box<str>,
}

/// A standing permission: every later request of this agent for this tool in this room is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRule {
    pub room: RoomId,
    pub agent: AgentId,
    pub tool: Box<str>,
    pub by: UserId,
    pub at: Time,
}

impl Approval {
    /// Returns the bytes of the tool input or the questions, and of the answers.
    pub fn length(&self) -> usize {
        let answers = match &self.decision {
            Some(Decision::Answered { answers, .. }) => answers.iter().map(QuestionAnswer::length).sum(),
            _ => 0,
        };
        self.subject.length() + answers
    }

    /// Returns the time from request to expiry. Both times come from one reading of the clock, so a clock
    /// change does not affect the result.
    pub fn open_for(&self) -> Duration {
        Duration::from_micros(self.expires_at.0.saturating_sub(self.asked_at.0).max(0).unsigned_abs())
    }

    /// Returns the approval with `decision`, or an error if it has one already.
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
    fn a_digest_is_parsed_from_64_hexadecimal_digits() {
        let digest = InputDigest(std::array::from_fn(|index| index as u8 * 7));
        assert_eq!(InputDigest::parse(&digest.to_string()), Some(digest));
        assert_eq!(InputDigest::parse(&digest.to_string().to_uppercase()), Some(digest));
        for odd in ["", "00", &"+1".repeat(32), &"é".repeat(32), &"00".repeat(33)] {
            assert_eq!(InputDigest::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn an_approval_is_decided_only_once() {
        let pending = Approval {
            id: ApprovalId::stored("a"),
            run: RunId::stored("r"),
            place: RunPlace::Room(RoomId::stored("room")),
            agent: AgentId::stored("coder"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload("{}".into())),
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
            Decision::Answered { by, answers: Vec::new() },
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
