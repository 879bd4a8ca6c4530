//! Inquiries of users to agents that wait for an answer. Each is answered once, by the gateway connection it
//! was sent to, and only to the subscriber that sent it.

use super::scheduler::GatewayConnectionId;
use crate::feed::SubscriberId;
use parlor_model::{AgentId, AnswerKind, Caller, Inquiry, Refusal, RoomId};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Timeout for an answer; later answers are dropped.
const INQUIRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of pending inquiries per user.
const MAX_PER_USER: usize = 32;
/// Maximum number of pending inquiries on the hub.
const MAX_PENDING: usize = 4096;

#[derive(Default)]
pub struct Inquiries {
    /// Pending inquiries, oldest first.
    waiting: VecDeque<PendingInquiry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingInquiry {
    pub request: Box<str>,
    pub connection: GatewayConnectionId,
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub inquiry: Inquiry,
    pub caller: Caller,
    pub subscriber: SubscriberId,
    pub at: Instant,
}

impl Inquiries {
    pub fn put(&mut self, pending: PendingInquiry) -> Result<(), Refusal> {
        self.drop_expired(pending.at);
        let own = self.waiting.iter().filter(|other| other.caller.user() == pending.caller.user()).count();
        if own >= MAX_PER_USER {
            return Err(Refusal::RateLimited { retry_after: INQUIRY_TIMEOUT });
        }
        if self.waiting.len() >= MAX_PENDING {
            return Err(Refusal::AtCapacity);
        }
        self.waiting.push_back(pending);
        Ok(())
    }

    /// Takes the inquiry that an answer belongs to. A workspace answer carries the request id; any other
    /// answer belongs to the oldest inquiry of its kind for the agent and the room.
    pub fn take(
        &mut self,
        connection: GatewayConnectionId,
        kind: AnswerKind,
        agent: &AgentId,
        room: Option<&RoomId>,
        request: Option<&str>,
        now: Instant,
    ) -> Option<PendingInquiry> {
        self.drop_expired(now);
        let matches = |pending: &PendingInquiry| {
            let addressed = match kind {
                AnswerKind::Workspace => request == Some(&pending.request),
                _ => room.is_none() || room == pending.room.as_ref(),
            };
            addressed
                && pending.connection == connection
                && pending.agent == *agent
                && pending.inquiry.answer() == kind
        };
        let index = self.waiting.iter().position(matches)?;
        self.waiting.remove(index)
    }

    fn drop_expired(&mut self, now: Instant) {
        while self.waiting.front().is_some_and(|oldest| now.duration_since(oldest.at) >= INQUIRY_TIMEOUT) {
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{SignInId, UserId, WorkspaceRequest};

    fn pending(number: usize, inquiry: Inquiry, at: Instant) -> PendingInquiry {
        let user = UserId::stored(format!("u{}", number / MAX_PER_USER));
        PendingInquiry {
            request: format!("q{number}").into(),
            connection: GatewayConnectionId(1),
            agent: AgentId::stored("coder"),
            room: Some(RoomId::stored("a")),
            inquiry,
            caller: Caller::person(user, SignInId::stored("s")),
            subscriber: SubscriberId(number as u64),
            at,
        }
    }

    fn workspace_inquiry() -> Inquiry {
        Inquiry::Workspace(WorkspaceRequest::Status)
    }

    #[test]
    fn an_answer_matches_one_inquiry_by_connection_agent_kind_and_request_and_once() {
        let (mut inquiries, now, coder) = (Inquiries::default(), Instant::now(), AgentId::stored("coder"));
        for number in 0..2 {
            inquiries.put(pending(number, workspace_inquiry(), now)).unwrap();
        }
        let mut answered = |connection, kind, agent: &str, request| {
            let found = inquiries.take(
                GatewayConnectionId(connection),
                kind,
                &AgentId::stored(agent),
                None,
                Some(request),
                now,
            );
            found.map(|pending| pending.request.to_string())
        };
        use AnswerKind::*;
        assert_eq!(answered(2, Workspace, "coder", "q1"), None, "another gateway");
        assert_eq!(answered(1, AgentInfo, "coder", "q1"), None, "another kind of answer");
        assert_eq!(answered(1, Workspace, "other", "q1"), None, "another agent");
        assert_eq!(answered(1, Workspace, "coder", "q2"), None, "an unknown request");
        assert_eq!(answered(1, Workspace, "coder", "q1").as_deref(), Some("q1"));
        assert_eq!(answered(1, Workspace, "coder", "q1"), None, "answered once");
        assert_eq!(
            inquiries.take(GatewayConnectionId(1), Workspace, &coder, None, None, now),
            None,
            "without the request id"
        );
    }

    #[test]
    fn an_answer_without_a_request_id_matches_the_oldest_inquiry_in_its_room() {
        let (mut inquiries, now, coder) = (Inquiries::default(), Instant::now(), AgentId::stored("coder"));
        let elsewhere = PendingInquiry { room: Some(RoomId::stored("b")), ..pending(0, Inquiry::Info, now) };
        inquiries.put(elsewhere).unwrap();
        inquiries.put(pending(1, Inquiry::Info, now)).unwrap();
        inquiries.put(pending(2, Inquiry::Info, now)).unwrap();
        let mut answered = |room: Option<&str>| {
            let room = room.map(RoomId::stored);
            let found = inquiries.take(
                GatewayConnectionId(1),
                AnswerKind::AgentInfo,
                &coder,
                room.as_ref(),
                None,
                now,
            );
            found.map(|pending| pending.request.to_string())
        };
        assert_eq!(answered(Some("c")), None);
        assert_eq!(answered(Some("a")).as_deref(), Some("q1"));
        assert_eq!(answered(None).as_deref(), Some("q0"));
    }

    #[test]
    fn late_answers_are_dropped_and_pending_inquiries_are_limited() {
        let (mut inquiries, now, coder) = (Inquiries::default(), Instant::now(), AgentId::stored("coder"));
        for number in 0..MAX_PENDING {
            inquiries.put(pending(number, workspace_inquiry(), now)).unwrap();
        }
        let one_more = |number, at| pending(number, workspace_inquiry(), at);
        assert!(matches!(inquiries.put(one_more(0, now)), Err(Refusal::RateLimited { .. })));
        assert_eq!(inquiries.put(one_more(MAX_PENDING, now)), Err(Refusal::AtCapacity));
        let later = now + INQUIRY_TIMEOUT;
        let answered =
            inquiries.take(GatewayConnectionId(1), AnswerKind::Workspace, &coder, None, Some("q1"), later);
        assert_eq!(answered, None);
        assert_eq!(inquiries.put(one_more(0, later)), Ok(()));
    }
}
