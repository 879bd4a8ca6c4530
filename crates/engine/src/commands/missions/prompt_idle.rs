//! Posts the idle prompt of a mission to an agent, in the name of the user who set the mission.
//!
//! Owns: the prompt and its time are stored in one transaction, so that no agent is prompted twice after a
//! crash.

use crate::changes::MissionChange;
use crate::commands::Command;
use crate::commands::messages::recipients::{deliveries, mailboxes, put_message};
use crate::commands::runs::{Addressed, Candidate, create_runs};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::routing_index::Recipient;
use parlor_model::command::{Posted, PromptIdle};
use parlor_model::mission::SOURCE;
use parlor_model::{
    AddressedBy, Destination, EntityKind, IdlePrompt, Member, MemberId, Mention, Message, Mission,
    MissionScope, Refusal, Room, RoomRole, Sender,
};
use std::sync::Arc;

pub struct Facts {
    mission: Mission,
    /// Room of the mission.
    room: Arc<Room>,
    /// Membership of the user who set the mission.
    creator: Arc<Member>,
    /// Name in the room of the agent to prompt.
    agent_name: Box<str>,
    /// The agent to prompt.
    candidate: Candidate,
    /// Idle prompt that applies to the agent, if any.
    idle: Option<IdlePrompt>,
    /// Whether the agent has a queued or active run in any room.
    is_busy: bool,
    /// Mailboxes of agents in the room that subscribe to its path.
    mailboxes: Vec<Recipient>,
}

impl Command for PromptIdle {
    type Facts = Facts;
    type Receipt = Posted;

    /// Only for the hub itself. The mission must be active, its creator still an admin of its room, and the
    /// agent a hosted member of that room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let no_mission = || Refusal::NotFound(EntityKind::Mission);
        let mission = view.store.mission(&self.mission)?.filter(Mission::is_on).ok_or_else(no_mission)?;
        let room = view.room(&mission.room)?.ok_or_else(no_mission)?;
        if MissionScope::of(&room) != mission.mission_scope {
            return Err(no_mission().into());
        }
        let creator = view.user(&mission.created_by)?.ok_or_else(no_mission)?;
        let creator = match view.member(&room.id, &creator.id)? {
            Some(member) if member.role >= RoomRole::Admin => member,
            _ => return Err(no_mission().into()),
        };
        let agent_name = view.agent_in_room(&self.agent, &room.id)?.name;
        let candidate = Candidate::load(&self.agent, AddressedBy::Directly, &room, view)?;
        let candidate = candidate.ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let overridden = view.store.idle(&mission.mission_scope, &self.agent)?;
        let own = view.store.idle(&MissionScope::Global, &self.agent)?;
        let idle = mission.idle(&self.agent, overridden.as_ref(), own.as_ref());
        let is_busy = view.store.has_open_run(&self.agent)?;
        let mailboxes = mailboxes(&view.agents_in(&room)?, &room, view);
        Ok(Facts { mission, room, creator, agent_name, candidate, idle, is_busy, mailboxes })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Posted, Refusal> {
        let Facts { mission, room, creator, agent_name, candidate, idle, is_busy, mailboxes } = facts;
        let idle = idle.ok_or(Refusal::NotFound(EntityKind::Override))?;
        let prompted_at = mission.agent(&self.agent).and_then(|known| known.prompted_at);
        let too_soon = prompted_at.is_some_and(|at| effects.now < at.plus(idle.idle_timeout()));
        let limit_reached = mission.prompts >= Mission::MAX_PROMPTS;
        let addressed = Addressed {
            room: &room,
            sender_role: Some(creator.role),
            candidates: std::slice::from_ref(&candidate),
            replies_last_minute: 0,
        };
        // A prompt whose run would be refused is not posted at all.
        let is_refused = addressed.refusal_reason(&candidate, None, effects.limits).is_some();
        if is_busy || too_soon || limit_reached || is_refused {
            return Err(Refusal::Forbidden);
        }
        effects.change(MissionChange::PutMission(Arc::new(mission.prompted(&self.agent, effects.now))));
        let (destination, sender) =
            (Destination::Room(room.id.clone()), Sender::User(mission.created_by.clone()));
        let text = mission.prompt(&self.agent, &idle).into();
        let mention = Mention { member: MemberId::Agent(self.agent), name: agent_name };
        let message = Arc::new(Message {
            mentions: vec![mention],
            source: SOURCE.into(),
            external_id: Some(mission.id.as_str().into()),
            ..effects.message(destination, sender, creator.name.clone(), text)
        });
        let posted = put_message(message.clone(), deliveries(&message, &mailboxes, &[]), None, effects);
        create_runs(&message, None, None, addressed, effects);
        Ok(posted)
    }
}
