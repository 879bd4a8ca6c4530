//! Lists the mailboxes of an agent with their subscriptions and the numbers of their open messages.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{AgentMailboxes, ListMailboxes, MailboxCard};
use parlor_model::{AutoRun, Mailbox, Scope, Time};

impl Query for ListMailboxes {
    /// Time of the query, which separates leases that have expired from others, and the setting of the agent.
    type Facts = (Time, Option<AutoRun>);
    type Answer = AgentMailboxes;

    /// Allowed for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Self::Facts, PermitError> {
        let agent = view.own_agent(caller, &self.agent, Scope::Agents)?;
        // A setting that an earlier version stored unchecked counts as absent.
        Ok((view.now, agent.agent.auto_run().unwrap_or_default()))
    }

    fn answer(
        &self,
        (now, auto_run): Self::Facts,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<AgentMailboxes, Fault> {
        let sessions = store.sessions(&self.agent)?;
        let mut mailboxes = Vec::with_capacity(sessions.len() + 1);
        for session in std::iter::once(None).chain(sessions.into_iter().map(Some)) {
            let id = session.as_ref().map(|session| session.id.clone());
            let mailbox = Mailbox { agent: self.agent.clone(), session: id };
            let subscriptions = store.subscriptions_of(&mailbox)?;
            mailboxes.push(MailboxCard { session, subscriptions, counts: store.mail_counts(&mailbox, now)? });
        }
        Ok(AgentMailboxes { auto_run, mailboxes })
    }
}
