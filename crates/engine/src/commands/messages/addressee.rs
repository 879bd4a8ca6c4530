//! The agent that a prompt addresses, and the room that it is posted in.
//!
//! Owns: `@name` at the start of the text addresses only agents that the caller can address anyway, which are the
//! agents of the room or, without a room, the agents that the caller may know of.

use crate::Fault;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::ReadView;
use parlor_model::{
    AgentId, EntityKind, Field, Refusal, Room, RoomId, RoomRole, RoomSelection, Scope, UserId,
};
use std::sync::Arc;

pub struct Addressee {
    /// `None` for a new room.
    pub room: Option<RoomId>,
    pub agent: AgentId,
    /// The text without the name of the agent.
    pub text: Arc<str>,
}

impl Addressee {
    /// Finds the addressed agent, which must be a member of the selected room. Without a room, the caller must
    /// still check that the user may use the agent. Requires the scope to read, too, because the receipt of a
    /// prompt reveals the resulting run.
    pub fn find(
        agent: &AgentId,
        rooms: &RoomSelection,
        text: &Arc<str>,
        caller: &CallerContext,
        view: &mut ReadView<'_>,
    ) -> Result<Self, PermitError> {
        let user = caller.signed_in(Scope::Read)?.user.id.clone();
        caller.signed_in(Scope::Write)?;
        if rooms.root.is_some() {
            view.selected_rooms(caller, rooms, Scope::Read)?;
            if rooms.room.is_none() {
                let rule = "is required with a project root: a new room has no project root";
                return Err(Refusal::invalid(Field::SelectedRoom, rule).into());
            }
        }
        let room = match &rooms.room {
            Some(room) => Some(view.in_room(caller, room, RoomRole::Member, Scope::Read)?.room),
            None => None,
        };
        let (mut agent, mut text) = (agent.clone(), text.clone());
        if let Some((name, rest)) = split_name(&text)
            && let Some(named) = only_agent_named(name, room.as_deref(), &user, view)?
        {
            (agent, text) = (named, rest.into());
        }
        if let Some(room) = &room
            && !view.agents_in(room)?.contains(&agent)
        {
            return Err(Refusal::NotFound(EntityKind::Agent).into());
        }
        Ok(Self { room: room.map(|room| room.id.clone()), agent, text })
    }
}

/// The agent with this id, or the only agent with this name, among those that the user can address.
fn only_agent_named(
    name: &str,
    room: Option<&Room>,
    user: &UserId,
    view: &mut ReadView<'_>,
) -> Result<Option<AgentId>, Fault> {
    let mut agents = Vec::new();
    match room {
        Some(room) => {
            for id in view.agents_in(room)?.iter() {
                agents
                    .extend(view.agent_named_in(&room.id, id)?.map(|agent| (id.clone(), agent.name.clone())));
            }
        }
        None => {
            let visible = view.store.agents_of(user)?.into_iter().chain(view.store.agents_near(user)?);
            agents.extend(visible.map(|agent| (agent.id, agent.name)));
        }
    }
    if let Some((id, _)) = agents.iter().find(|(id, _)| id.as_str() == name) {
        return Ok(Some(id.clone()));
    }
    let name = name.to_lowercase();
    let mut named = agents.into_iter().filter(|(_, own)| own.to_lowercase() == name);
    Ok(named.next().filter(|_| named.next().is_none()).map(|(id, _)| id))
}

/// Splits `@agent text` into the id or name of the agent and the text. `None` if the text has no such prefix.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('@')?.split_once(char::is_whitespace)?;
    let is_identifier =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let rest = rest.trim_start();
    if !is_identifier || rest.is_empty() {
        return None;
    }
    Some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_identifier_followed_by_text_addresses_an_agent() {
        assert_eq!(split_name("@coder fix it"), Some(("coder", "fix it")));
        assert_eq!(split_name("@co-der_2\n fix it"), Some(("co-der_2", "fix it")));
        for verbatim in
            ["coder fix it", "@coder", "@coder  ", "@ fix it", "@a/b fix it", "@é fix it", "a @coder b"]
        {
            assert_eq!(split_name(verbatim), None, "{verbatim}");
        }
    }
}
