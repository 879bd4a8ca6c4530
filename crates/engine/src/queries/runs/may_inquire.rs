//! Checks whether the caller may send an inquiry to an agent.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::inquiry::is_within_folder;
use parlor_model::query::MayInquire;
use parlor_model::{EntityKind, Field, Inquiry, MemberId, Refusal, RoomRole, Scope};

impl Query for MayInquire {
    type Facts = ();
    type Answer = ();

    /// Agents are queried through a common room. `Info` is also allowed without one: to the owner, and to
    /// users who share any room with the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
        let about_itself = self.inquiry == Inquiry::Info;
        let scope = if about_itself { Scope::Read } else { Scope::Write };
        let user = caller.signed_in(scope)?.user.id.clone();
        let agent = view.agent(&self.agent)?;
        if about_itself && agent.as_ref().is_some_and(|agent| agent.owner == user) {
            return Ok(());
        }
        let unknown = Refusal::NotFound(EntityKind::Agent);
        let Some(room) = &self.room else {
            if !about_itself {
                return Err(Refusal::NotFound(EntityKind::Room).into());
            }
            let shared =
                view.store.share_a_room(&MemberId::User(user), &MemberId::Agent(self.agent.clone()))?;
            return if shared { Ok(()) } else { Err(unknown.into()) };
        };
        let asker = view.in_room(caller, room, RoomRole::Member, scope)?;
        let agent = agent.ok_or(unknown)?;
        view.agent_in_room(&self.agent, room)?;
        match &self.inquiry {
            Inquiry::Info => Ok(()),
            Inquiry::Command { .. } => {
                let may = asker.member.role >= asker.room.agent_command_role && !asker.room.is_frozen();
                if may { Ok(()) } else { Err(Refusal::Forbidden.into()) }
            }
            Inquiry::Workspace(request) => {
                let folder = agent.host.working_directory.as_deref();
                let within = request.path().is_none_or(|path| is_within_folder(folder, path));
                let outside = Refusal::invalid(Field::Path, "must lie in the agent's folder");
                if within { Ok(()) } else { Err(outside.into()) }
            }
        }
    }

    fn answer(&self, (): (), _store: &mut dyn Snapshot, _limits: &Limits) -> Result<(), Fault> {
        Ok(())
    }
}
