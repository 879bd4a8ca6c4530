//! Deletes a room with everything in it.

use super::audit::room_subject;
use crate::changes::RoomChange;
use crate::commands::Command;
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::commands::missions::audit::audit_mission;
use crate::commands::missions::in_scope::InScope;
use crate::commands::turns::settle_batch::retry;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::ports::OpenApprovalsOf;
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::DeleteRoom;
use parlor_model::{Approval, Event, Refusal, RoomRole, Run, RunCause, Scope, SessionRef, UserId};
use std::sync::Arc;

pub struct Facts {
    /// The users in the room.
    people: Arc<[UserId]>,
    /// The open approvals of the room.
    approvals: Vec<Approval>,
    /// Mission of the room, which ends with it.
    mission: Option<InScope>,
    /// Open runs of the room. They are removed with it.
    runs: Vec<Run>,
}

impl Command for DeleteRoom {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the owner of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let owner = view.in_room(caller, &self.room, RoomRole::Owner, Scope::Write)?;
        let members = view.store.members(&self.room, usize::MAX, 0)?;
        let people = members.iter().filter_map(|member| member.member.user().cloned()).collect();
        let approvals = view.store.open_approvals(OpenApprovalsOf::Room(&self.room))?;
        let runs = view.store.open_runs_in(&self.room)?;
        Ok(Facts { people, approvals, mission: InScope::with_mission_of(&owner.room, view)?, runs })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { people, approvals, mission, runs } = facts;
        // Also a session without automatic turns may have a run that holds mail.
        for run in runs {
            if let (RunCause::Batch { messages, attempt }, Some(session)) = (&run.cause, run.session()) {
                let session = SessionRef { agent: run.agent.clone(), session: session.clone() };
                retry(&session, None, messages, *attempt, "the room of the run was removed", effects);
            }
        }
        let withdrawn = withdraw(&approvals, effects);
        let ended = mission.and_then(|in_scope| in_scope.end_and_publish(effects));
        effects.change(RoomChange::RemoveRoom(self.room.clone()));
        effects.publish(Event::RoomRemoved { room: self.room.clone(), people });
        effects.audit(Action::RoomRemoved, room_subject(&self.room), None);
        audit_withdrawn(&withdrawn, effects);
        if let Some(mission) = ended {
            audit_mission(&mission, effects);
        }
        Ok(())
    }
}
