//! Lists the sessions of the caller's agents.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListSessions;
use parlor_model::{Mailbox, Session, Subscription, UserId};
use std::cmp::Reverse;

impl Query for ListSessions {
    type Facts = UserId;
    type Answer = Vec<(Session, Vec<Subscription>)>;

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        Ok(super::owner(caller)?.user.id.clone())
    }

    fn answer(
        &self,
        user: UserId,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<(Session, Vec<Subscription>)>, Fault> {
        let mut sessions = Vec::new();
        for agent in store.agents_of(&user)? {
            if agent.id.as_str().starts_with(&*self.agent_prefix) {
                sessions.extend(store.sessions(&agent.id)?);
            }
        }
        let used = |session: &Session| session.last_used_at.unwrap_or(session.created_at);
        sessions.sort_by(|one, other| {
            let key = |session| (Reverse(used(session)), &session.agent, &session.id);
            key(one).cmp(&key(other))
        });
        sessions.truncate(self.limit);
        let with_subscriptions = sessions.into_iter().map(|session| {
            let mailbox = Mailbox { agent: session.agent.clone(), session: Some(session.id.clone()) };
            Ok((session, store.subscriptions_of(&mailbox)?))
        });
        with_subscriptions.collect()
    }
}
