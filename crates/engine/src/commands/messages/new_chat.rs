//! Creates a private room with a user and an agent, and posts the first message there.

use super::attachments::{load_attachable, require_attachable};
use super::recipients::Recipients;
use crate::changes::RoomChange;
use crate::commands::rooms::members::{member, members_for_event};
use crate::commands::rooms::names::OwnNames;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::Posted;
use parlor_model::{
    Agent, AgentId, Destination, Event, Field, MemberChange, MemberId, Message, Refusal, Room, RoomId,
    RoomKind, RoomRole, Scope, Sender, Upload,
};
use std::sync::Arc;

/// Number of words that a chat's title takes from its first message.
const TITLE_WORDS: usize = 6;
/// Maximum characters of a chat's title.
const TITLE_CHARS: usize = 60;

/// The first message to an agent, and the facts that creating its room needs.
pub struct NewChat {
    caller: Arc<AuthContext>,
    agent: Arc<Agent>,
    agent_names: OwnNames,
    text: Arc<str>,
    attachments: Vec<Box<str>>,
    /// The named uploads that exist.
    uploads: Vec<Upload>,
}

impl NewChat {
    /// Allowed for the owner of the agent, and for users with whom the agent is shared.
    pub fn load(
        agent: &AgentId,
        text: Arc<str>,
        attachments: &[Box<str>],
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Self, PermitError> {
        let agent = view.own_or_shared_agent(caller, agent, Scope::Write)?;
        let uploads = load_attachable(attachments, view.store)?;
        let caller = caller.signed_in(Scope::Write)?;
        let agent_names = OwnNames::load_agent(&agent, view)?;
        Ok(Self { caller, agent, agent_names, text, attachments: attachments.to_vec(), uploads })
    }

    /// Creates the room and posts the message.
    pub fn start(self, effects: &mut EffectsBuilder<'_>) -> Result<(RoomId, Posted), Refusal> {
        let (agent, user, now) = (self.agent, &self.caller.user, effects.now);
        if !agent.is_hosted() {
            return Err(Refusal::invalid(Field::Agent, "must name an agent that has a host"));
        }
        let attachments = require_attachable(&self.attachments, &self.uploads, &user.id)?;
        let room = Arc::new(Room {
            id: RoomId::stored(effects.new_id()),
            name: title(&self.text),
            kind: RoomKind::Private,
            policy: Default::default(),
            system_prompt: None,
            agent_command_role: RoomRole::Member,
            approve_role: RoomRole::Member,
            router: None,
            frozen: None,
            project_root: None,
            description: None,
            created_by: user.id.clone(),
            created_at: now,
            updated_at: now,
        });
        let (own, its) = (OwnNames::from(&**user), self.agent_names);
        let owner = (own.name.clone(), &own);
        let owner = member(&room, MemberId::User(user.id.clone()), RoomRole::Owner, owner, now);
        let addressed = (its.among(std::slice::from_ref(&owner)), &its);
        let addressed = member(&room, MemberId::Agent(agent.id.clone()), RoomRole::Member, addressed, now);
        let members = [owner, addressed];
        effects.change(RoomChange::PutRoom(room.clone()));
        let event_members = members_for_event(&members);
        let [owner, addressed] = members.map(Arc::new);
        let its_name = addressed.name.clone();
        for member in [owner.clone(), addressed] {
            let change = MemberChange::Added(member.member.clone());
            effects.change(RoomChange::PutMember(member));
            let (room, members) = (room.clone(), event_members.clone());
            effects.publish(Event::MembersChanged { room, change, members });
        }
        let recipients = Recipients::only(&agent, its_name);
        let (destination, from) = (Destination::Room(room.id.clone()), Sender::User(user.id.clone()));
        let message = Message {
            mentions: recipients.mentions.clone(),
            attachments,
            ..effects.message(destination, from, user.display_name.clone(), self.text)
        };
        let sender = InRoom { caller: self.caller.clone(), room, member: owner };
        Ok((sender.room.id.clone(), recipients.deliver(message, &sender, None, effects)))
    }
}

fn title(text: &str) -> Box<str> {
    let words: Vec<&str> = text.split_whitespace().take(TITLE_WORDS).collect();
    let title: String = words.join(" ").chars().filter(|c| !c.is_control()).take(TITLE_CHARS).collect();
    if title.trim().is_empty() { "Chat".into() } else { title.trim().into() }
}
