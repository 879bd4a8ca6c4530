//! Assignment of tasks to members of their room, and the run that an agent gets for its task.

use crate::Fault;
use crate::commands::runs::{self, Addressed, Candidate};
use crate::effects::EffectsBuilder;
use crate::read_view::WriterView;
use parlor_model::{
    AddressedBy, ConversationId, Field, Lineage, MemberId, Refusal, Room, RoomRole, Run, RunCause, RunId,
    RunOutcome, RunPlace, RunState, Task, Usage,
};
use std::slice;

/// The user or agent that a command assigns a task to.
pub struct Assignee {
    pub id: MemberId,
    pub is_in_room: bool,
    /// The agent, if the assignee is a hosted one in the room.
    pub candidate: Option<Candidate>,
}

impl Assignee {
    pub fn load(id: &MemberId, room: &Room, view: &mut WriterView<'_>) -> Result<Self, Fault> {
        let is_in_room = view.store.member(&room.id, id)?.is_some();
        let candidate = match id.agent().filter(|_| is_in_room) {
            Some(agent) => Candidate::load(agent, AddressedBy::Directly, room, view)?,
            None => None,
        };
        Ok(Self { id: id.clone(), is_in_room, candidate })
    }

    /// The assignee's id, if the assignee is a member of the room.
    pub fn require_member(&self) -> Result<MemberId, Refusal> {
        match self.is_in_room {
            true => Ok(self.id.clone()),
            false => Err(Refusal::invalid(Field::Assignee, "must be a member of the room")),
        }
    }

    /// Creates the run for a task that was assigned to an agent, queued or refused with a reason.
    /// `caller_role` is the role of the user who assigned it.
    pub fn create_run(
        &self,
        task: &Task,
        room: &Room,
        caller_role: Option<RoomRole>,
        effects: &mut EffectsBuilder<'_>,
    ) {
        let Some(candidate) = &self.candidate else { return };
        let agent = &candidate.agent.id;
        let by_agent = task.created_by.agent().filter(|by| *by != agent);
        let conversation = ConversationId::stored(effects.new_id());
        let begun = match by_agent {
            Some(by) => {
                let asker = Lineage::start(conversation.clone(), by.clone());
                asker.extend_to(agent, effects.limits.chain_depth).ok()
            }
            None => Some(Lineage::start(conversation.clone(), agent.clone())),
        };
        let addressed = Addressed {
            room,
            sender_role: caller_role,
            candidates: slice::from_ref(candidate),
            replies_last_minute: 0,
        };
        let refused = match begun {
            Some(_) => addressed.refusal_reason(candidate, by_agent, effects.limits),
            None => Some("the chain of agents is too long"),
        };
        let run = Run {
            id: RunId::stored(effects.new_id()),
            agent: agent.clone(),
            place: RunPlace::Room(room.id.clone()),
            cause: RunCause::Task(task.id.clone()),
            asked_by: by_agent.cloned(),
            addressed: AddressedBy::Directly,
            lineage: begun.unwrap_or_else(|| Lineage::start(conversation, agent.clone())),
            parent: None,
            state: match refused {
                None => RunState::Queued,
                Some(reason) => RunState::Ended(RunOutcome::Refused(reason.into())),
            },
            reply: None,
            usage: Usage::default(),
            stop_requested: false,
            queued_at: effects.now,
            started_at: None,
            ended_at: refused.map(|_| effects.now),
        };
        runs::put(run, effects);
    }
}
