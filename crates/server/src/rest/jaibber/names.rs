//! Names of the members of a room. Jaibber clients address agents and show authors by name.

use crate::App;
use parlor_model::query::{ListAgents, ListMembers, MemberPage};
use parlor_model::{Agent, AgentId, Caller, Member, MemberId, Refusal, RoomId, Task};
use parlor_wire::ably::jaibber::rest;

#[derive(Default)]
pub struct Names(Vec<Member>);

impl Names {
    /// Reads the members of a room that the caller may read.
    pub async fn of(app: &App, caller: &Caller, room: &RoomId) -> Result<Self, Refusal> {
        let query = ListMembers { room: room.clone(), limit: ListMembers::MAX_NAMES, offset: 0 };
        let MemberPage { members, .. } = app.hub.read(caller, query).await?;
        Ok(Self(members))
    }

    /// Username of a user or name of an agent; the id of a former member.
    fn name<'a>(&'a self, id: &'a MemberId) -> &'a str {
        let member = self.0.iter().find(|member| member.member == *id);
        member.map_or(id.as_str(), |member| match id {
            MemberId::User(_) => &*member.handle,
            MemberId::Agent(_) => &*member.name,
        })
    }

    /// The agent of the room with this name, ignoring case.
    pub fn agent(&self, name: &str) -> Option<&AgentId> {
        let name = name.to_lowercase();
        let named = self.0.iter().filter(|member| member.name.to_lowercase() == name);
        named.filter_map(|member| member.member.agent()).next()
    }

    pub fn has(&self, agent: &AgentId) -> bool {
        self.0.iter().any(|member| member.member.agent() == Some(agent))
    }

    pub fn task<'a>(&'a self, task: &'a Task) -> rest::Task<'a> {
        let assignee = task.assignee.as_ref().filter(|member| member.agent().is_some());
        rest::Task::of(task, assignee.map(|member| self.name(member)), self.name(&task.created_by))
    }
}

/// The caller's own agent with this name, its own or that in the room, ignoring case; of several agents, the one in the
/// room.
pub async fn own_agent(
    app: &App,
    caller: &Caller,
    name: &str,
    room: &Names,
) -> Result<Option<Agent>, Refusal> {
    let wanted = name.to_lowercase();
    let agents = app.hub.read(caller, ListAgents).await?.into_iter();
    let own = agents.filter(|agent| Some(&agent.owner) == caller.user());
    let in_room = room.agent(name);
    let is_named = |agent: &Agent| agent.name.to_lowercase() == wanted || in_room == Some(&agent.id);
    let mut named: Vec<Agent> = own.filter(is_named).collect();
    let in_room = named.iter().position(|agent| room.has(&agent.id)).unwrap_or(0);
    Ok((!named.is_empty()).then(|| named.swap_remove(in_room)))
}
