//! What people asked of agents and wait to be answered: each is answered once, by the link that was asked, to who asked.

use super::scheduler::GatewayConnectionId;
use crate::fanout::SubscriberId;
use parlor_model::{AgentId, AnswerKind, Caller, Inquiry, Refusal, RoomId};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// An answer that comes later is nobody's.
const INQUIRY_TIMEOUT: Duration = Duration::from_secs(30);
/// Inquiries that wait at once, of one person and in all.
const MAX_PER_USER: usize = 32;
const MAX_PENDING: usize = 4096;

#[derive(Default)]
pub struct Inquiries {
    /// The oldest first.
    waiting: VecDeque<PendingInquiry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingInquiry {
    pub request: Box<str>,
    pub link: GatewayConnectionId,
    pub agent: AgentId,
    pub room: Option<RoomId>,
    pub inquiry: Inquiry,
    pub caller: Caller,
    pub viewer: SubscriberId,
    pub at: Instant,
}

impl Inquiries {
    pub fn put(&mut self, one: PendingInquiry) -> Result<(), Refusal> {
        self.forget_old(one.at);
        let own = self.waiting.iter().filter(|other| other.caller.user() == one.caller.user()).count();
        if own >= MAX_PER_USER {
            return Err(Refusal::RateLimited { retry_after: INQUIRY_TIMEOUT });
        }
        if self.waiting.len() >= MAX_PENDING {
            return Err(Refusal::AtCapacity);
        }
        self.waiting.push_back(one);
        Ok(())
    }

    /// Takes the one that is answered so. Answers that bear no name are to the oldest of their kind.
    pub fn take(
        &mut self,
        link: GatewayConnectionId,
        kind: AnswerKind,
        agent: &AgentId,
        room: Option<&RoomId>,
        request: Option<&str>,
        now: Instant,
    ) -> Option<PendingInquiry> {
        self.forget_old(now);
        let meant = |one: &PendingInquiry| {
            let named = match kind {
                AnswerKind::Workspace => request == Some(&one.request),
                _ => room.is_none() || room == one.room.as_ref(),
            };
            named && one.link == link && one.agent == *agent && one.inquiry.answer() == kind
        };
        let index = self.waiting.iter().position(meant)?;
        self.waiting.remove(index)
    }

    fn forget_old(&mut self, now: Instant) {
        while self.waiting.front().is_some_and(|oldest| now.duration_since(oldest.at) >= INQUIRY_TIMEOUT) {
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{SignInId, UserId, WorkspaceRequest};

    fn one(number: usize, inquiry: Inquiry, at: Instant) -> PendingInquiry {
        let user = UserId::stored(format!("u{}", number / MAX_PER_USER));
        PendingInquiry {
            request: format!("q{number}").into(),
            link: GatewayConnectionId(1),
            agent: AgentId::stored("coder"),
            room: Some(RoomId::stored("a")),
            inquiry,
            caller: Caller::person(user, SignInId::stored("s")),
            viewer: SubscriberId(number as u64),
            at,
        }
    }

    fn look() -> Inquiry {
        Inquiry::Workspace(WorkspaceRequest::Status)
    }

    #[test]
    fn an_answer_is_for_who_asked_just_that_of_just_them_and_once() {
        let (mut inquiries, now, coder) = (Inquiries::default(), Instant::now(), AgentId::stored("coder"));
        for number in 0..2 {
            inquiries.put(one(number, look(), now)).unwrap();
        }
        let mut answered = |link, kind, agent: &str, request| {
            let found = inquiries.take(
                GatewayConnectionId(link),
                kind,
                &AgentId::stored(agent),
                None,
                Some(request),
                now,
            );
            found.map(|one| one.request.to_string())
        };
        use AnswerKind::*;
        assert_eq!(answered(2, Workspace, "coder", "q1"), None, "another gateway");
        assert_eq!(answered(1, AgentInfo, "coder", "q1"), None, "another one");
        assert_eq!(answered(1, Workspace, "other", "q1"), None, "another agent");
        assert_eq!(answered(1, Workspace, "coder", "q2"), None, "one that nobody asked");
        assert_eq!(answered(1, Workspace, "coder", "q1").as_deref(), Some("q1"));
        assert_eq!(answered(1, Workspace, "coder", "q1"), None, "once");
        assert_eq!(
            inquiries.take(GatewayConnectionId(1), Workspace, &coder, None, None, now),
            None,
            "without its name"
        );
    }

    #[test]
    fn what_bears_no_name_answers_the_oldest_in_its_room() {
        let (mut inquiries, now, coder) = (Inquiries::default(), Instant::now(), AgentId::stored("coder"));
        let elsewhere = PendingInquiry { room: Some(RoomId::stored("b")), ..one(0, Inquiry::Info, now) };
        inquiries.put(elsewhere).unwrap();
        inquiries.put(one(1, Inquiry::Info, now)).unwrap();
        inquiries.put(one(2, Inquiry::Info, now)).unwrap();
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
            found.map(|one| one.request.to_string())
        };
        assert_eq!(answered(Some("c")), None);
        assert_eq!(answered(Some("a")).as_deref(), Some("q1"));
        assert_eq!(answered(None).as_deref(), Some("q0"));
    }

    #[test]
    fn late_answers_are_nobodys_and_nobody_asks_without_end() {
        let (mut inquiries, now, coder) = (Inquiries::default(), Instant::now(), AgentId::stored("coder"));
        for number in 0..MAX_PENDING {
            inquiries.put(one(number, look(), now)).unwrap();
        }
        let one_more = |number, at| one(number, look(), at);
        assert!(matches!(inquiries.put(one_more(0, now)), Err(Refusal::RateLimited { .. })));
        assert_eq!(inquiries.put(one_more(MAX_PENDING, now)), Err(Refusal::AtCapacity));
        let later = now + INQUIRY_TIMEOUT;
        let answered =
            inquiries.take(GatewayConnectionId(1), AnswerKind::Workspace, &coder, None, Some("q1"), later);
        assert_eq!(answered, None);
        assert_eq!(inquiries.put(one_more(0, later)), Ok(()));
    }
}
