//! Removes an account, with its agents and memberships.

use crate::audit;
use crate::changes::AccountChange;
use crate::commands::Command;
use crate::commands::agents::removal::{Departure, publish_removal};
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::commands::rooms::leave_all::leave_all;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::routing_index::RouteChange;
use parlor_model::audit::Action;
use parlor_model::command::RemoveUser;
use parlor_model::{Agent, EntityKind, Event, MemberId, Refusal, SiteRole, User};
use std::sync::Arc;

pub struct Facts {
    user: Arc<User>,
    /// Agents of the user.
    agents: Vec<Agent>,
    /// Memberships of the user and of the agents, and open approvals of the agents.
    departure: Departure,
    /// Number of site admins.
    admins: u64,
}

impl Command for RemoveUser {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.site_admin()?;
        let user = view.user(&self.user)?.ok_or(Refusal::NotFound(EntityKind::User))?;
        let agents = view.store.agents_of(&self.user)?;
        let mut departure = Departure::default();
        departure.add_member(&MemberId::User(self.user.clone()), view)?;
        for agent in &agents {
            departure.add_agent(agent, view)?;
        }
        Ok(Facts { user, agents, departure, admins: view.store.admins()? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        if facts.user.role == SiteRole::Admin && facts.admins <= 1 {
            return Err(Refusal::LastOneRequired(EntityKind::User));
        }
        let withdrawn = withdraw(&facts.departure.open_approvals, effects);
        leave_all(&facts.departure.memberships, effects);
        // Also removes the agents from the store.
        effects.change(AccountChange::RemoveUser(self.user.clone()));
        for agent in &facts.agents {
            effects.routes.push(RouteChange::RemoveAgent(agent.id.clone()));
            publish_removal(agent, effects);
        }
        effects.publish(Event::UserRemoved(self.user));
        effects.audit(Action::UserRemoved, Some(audit::user(&facts.user)), None);
        audit_withdrawn(&withdrawn, effects);
        Ok(())
    }
}
