//! Reports of agents during a run: plans, usage, tasks and terminal output.

use super::super::scheduler::GatewayConnectionId;
use super::Hosting;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::ReadView;
use parlor_model::command::{CreateTask, ReportTask, ReportUsage, UpdatePlan};
use parlor_model::run_event::Plan;
use parlor_model::{
    AgentId, Caller, EntityKind, MemberId, Operation, Refusal, RoomId, RoomRole, RunContext, RunEvent, RunId,
    Scope, Signal, TaskId, TaskPriority, TaskStatus, UsageReport, mention,
};

impl Hosting {
    /// Updates the plan of an agent's active run. Does nothing if the agent has no active run.
    pub async fn update_plan(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        context: Option<&RunContext>,
        plan: Plan,
    ) -> Result<(), Refusal> {
        let run = {
            let mut scheduler = self.hub.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.mark_alive(agent, context);
            let Some((run, _)) = scheduler.runs(agent, context).pop() else { return Ok(()) };
            run
        };
        match self.hub.execute(&Caller::OPERATOR, UpdatePlan { run, plan }).await {
            // The run has just ended.
            Err(Refusal::NotFound(EntityKind::Run)) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Returns the context of an agent's newest active run, for frames that name neither a room nor a session.
    pub fn context_of(&self, agent: &AgentId) -> Option<RunContext> {
        self.hub.scheduler().lock().runs(agent, None).pop().map(|(_, place)| place.context())
    }

    /// Whether an active run has started its reply.
    pub fn has_spoken(&self, run: &RunId) -> bool {
        self.hub.scheduler().lock().has_spoken(run)
    }

    /// Publishes an event of a run other than its reply, such as usage or a new task. Does nothing if the
    /// agent has no active run.
    pub async fn run_event(
        &self,
        caller: &Caller,
        connection: GatewayConnectionId,
        agent: &AgentId,
        context: Option<&RunContext>,
        event: RunEvent,
    ) -> Result<(), Refusal> {
        let (run, place) = {
            let mut scheduler = self.hub.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.mark_alive(agent, context);
            let Some(found) = scheduler.runs(agent, context).pop() else { return Ok(()) };
            found
        };
        if let RunEvent::Usage(UsageReport { spent: Some(usage), .. }) = &event {
            let report = ReportUsage { run: run.clone(), usage: *usage };
            self.hub.execute(&Caller::OPERATOR, report).await?;
        }
        if let RunEvent::Task { title, description, assignee } = &event {
            // Tasks belong to rooms.
            let Some(room) = place.room().cloned() else { return Ok(()) };
            let assignee = self.member_named(&room, assignee.as_deref()).await?;
            let (title, description) = (title.clone(), description.clone());
            let by = Some(agent.clone());
            let new = CreateTask {
                room,
                by,
                title,
                description,
                priority: TaskPriority::Medium,
                due_at: None,
                assignee,
                parent: None,
            };
            self.hub.execute(caller, new).await?;
        }
        self.hub.fanout().run_event(&run, event);
        Ok(())
    }

    async fn member_named(&self, room: &RoomId, name: Option<&str>) -> Result<Option<MemberId>, Refusal> {
        let Some(name) = name.map(Box::<str>::from) else { return Ok(None) };
        let room = room.clone();
        let members = self.hub.read_snapshot(move |_, store| store.members(&room, usize::MAX, 0)).await?;
        let found = mention::resolve("", &[name], &members);
        Ok(found.into_iter().next().map(|mention| mention.member))
    }

    /// Reports the status of a task that is assigned to an agent on this gateway connection.
    pub async fn report_task(
        &self,
        caller: &Caller,
        connection: GatewayConnectionId,
        task: TaskId,
        status: TaskStatus,
        result: Option<Box<str>>,
    ) -> Result<(), Refusal> {
        let id = task.clone();
        let found = self.hub.read_snapshot(move |_, store| store.task(&id)).await?;
        let agent = found.and_then(|task| task.assignee?.agent().cloned());
        let here =
            |agent: &AgentId| self.hub.scheduler().lock().agent_on_connection(agent, connection).is_some();
        // The task of another agent yields the same refusal as a missing task.
        let agent = agent.filter(here).ok_or(Refusal::NotFound(EntityKind::Task))?;
        self.hub.execute(caller, ReportTask { task, agent, status, result }).await.map(drop)
    }

    /// Publishes filtered terminal output of an agent in the room of its active run.
    pub fn terminal(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        context: Option<&RunContext>,
        data: &str,
    ) {
        let (room, data, agent_name) = {
            let mut scheduler = self.hub.scheduler().lock();
            let Some(name) =
                scheduler.agent_on_connection(agent, connection).map(|online| online.name.clone())
            else {
                return;
            };
            let Some((room, data)) = scheduler.terminal(agent, context, data) else { return };
            (room, data, name)
        };
        if !data.is_empty() {
            let signal =
                Signal::Terminal { room: room.clone(), agent: agent.clone(), agent_name, data: data.into() };
            self.hub.fanout().signal_room(&room, &signal, None);
        }
    }
}

impl Hosting {
    /// Requests the agents with this name in a room, or all agents of the room, to end. Allowed for admins of the room
    /// who may publish in it, and for the owner of every agent with the name, with the scope for agents.
    pub async fn dismiss_agents(
        &self,
        caller: &Caller,
        room: &RoomId,
        agent_name: Option<&str>,
    ) -> Result<(), Refusal> {
        let (who, of, name) = (caller.clone(), room.clone(), agent_name.map(Box::<str>::from));
        let permitted = self.hub.read_snapshot(move |hub, snapshot| {
            hub.with_view(&who, snapshot, |caller, view| {
                PermitError::split(may_dismiss(caller, view, &of, name.as_deref()))
            })
        });
        let InRoom { caller, member, .. } = permitted.await??;
        let (by, username) = (caller.user.id.clone(), member.name.clone());
        let agent_name = agent_name.map(Into::into);
        let signal = Signal::AgentsDismissed { room: room.clone(), by, username, agent_name };
        self.hub.fanout().signal_room(room, &signal, None);
        Ok(())
    }
}

fn may_dismiss(
    caller: &CallerContext,
    view: &mut ReadView<'_>,
    room: &RoomId,
    name: Option<&str>,
) -> Result<InRoom, PermitError> {
    let own = view.at_room_for_any(caller, &[Operation::Publish, Operation::Presence], room)?;
    if own.member.role >= RoomRole::Admin && own.caller.is_permitted_in(Operation::Publish, room) {
        return Ok(own);
    }
    let mut named = Vec::new();
    for id in view.store.agents_in(room)? {
        let (Some(agent), Some(in_room)) = (view.agent(&id)?, view.agent_named_in(room, &id)?) else {
            continue;
        };
        // The client of an agent knows only the agent's own name.
        let has = |name: &str| [&agent.name, &in_room.name].iter().any(|own| mention::same_name(own, name));
        if name.is_some_and(has) {
            named.push(agent);
        }
    }
    let owns_all = !named.is_empty() && named.iter().all(|agent| agent.owner == own.caller.user.id);
    if owns_all && own.caller.has(Scope::Agents) { Ok(own) } else { Err(Refusal::Forbidden.into()) }
}
