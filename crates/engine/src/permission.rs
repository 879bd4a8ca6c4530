//! Permission predicates that commands and queries share.
//!
//! A predicate returns evidence: the entities that it has proved the caller's permission for, so that a
//! decision cannot use them without the check. Default deny: without evidence a command gets no facts. Where
//! the existence of a thing is secret, a hidden thing and a missing one yield the same refusal.

use crate::read_view::ReadView;
use crate::{Fault, HUB};
use parlor_model::audit::Actor;
use parlor_model::{
    Agent, AgentId, AgentLimit, Approval, ApprovalId, Caller, EntityKind, EventScope, Gateway, GatewayId,
    Grant, Invitation, Mailbox, Member, MemberId, Message, MessageId, Operation, Path, Pattern, Principal,
    Refusal, Room, RoomId, RoomInvitation, RoomRole, Router, RouterId, Run, RunId, Scope, SecretHash,
    Service, SiteRole, Task, TaskId, User,
};
use std::sync::Arc;

/// Why a command or query got no facts.
#[derive(Debug)]
pub enum PermitError {
    /// The caller may not do this.
    Refused(Refusal),
    /// The store could not be read.
    Failed(Fault),
}

impl From<Refusal> for PermitError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Fault> for PermitError {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl PermitError {
    /// Separates the refusal, which the caller gets, from the fault, which ends the batch or the read.
    pub fn split<T>(permitted: Result<T, Self>) -> Result<Result<T, Refusal>, Fault> {
        match permitted {
            Ok(facts) => Ok(Ok(facts)),
            Err(Self::Refused(refusal)) => Ok(Err(refusal)),
            Err(Self::Failed(fault)) => Err(fault),
        }
    }
}

/// Auth context: account and scopes of the caller, as stored now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthContext {
    pub user: Arc<User>,
    /// `None` for a user session, which has all scopes of the account.
    pub scopes: Option<Vec<Scope>>,
    /// Grants of the key and of the credential that limit the caller: each must permit an operation. Without
    /// grants the caller is not limited to places.
    pub grants: Vec<Arc<Grant>>,
}

impl AuthContext {
    /// Whether the caller has a scope. An API key never exceeds the current role of its owner. A grant of places
    /// excludes every scope except those for hosting agents, and a grant of an agent excludes every scope.
    pub fn has(&self, scope: Scope) -> bool {
        let is_for_hosting = matches!(scope, Scope::Agents | Scope::Hosting);
        let excluded = self.is_limited() && (!is_for_hosting || self.agent_limit().is_some());
        !excluded
            && self.is_within_scopes(scope)
            && (self.user.role == SiteRole::Admin || !scope.is_for_admins())
    }

    fn is_within_scopes(&self, scope: Scope) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.iter().any(|given| given.covers(scope)))
    }

    /// Whether a grant limits the caller to operations on places.
    pub fn is_limited(&self) -> bool {
        !self.grants.is_empty()
    }

    /// The agent as which alone the caller acts, if a grant limits it to one.
    pub fn agent_limit(&self) -> Option<&AgentLimit> {
        self.grants.iter().find_map(|grant| grant.agent())
    }

    /// Whether the scopes and every grant permit the operation in a room of which the caller is a member.
    pub(crate) fn is_permitted_in(&self, operation: Operation, room: &RoomId) -> bool {
        self.is_within_scopes(scope_for(operation)) && self.is_granted(operation, &Path::of_room(room))
    }

    /// Whether every grant permits the operation.
    fn is_granted(&self, operation: Operation, place: &Path) -> bool {
        self.grants.iter().all(|grant| grant.permits(operation, place))
    }

    pub fn is_site_admin(&self) -> bool {
        self.has(Scope::Admin)
    }
}

/// A caller with its auth context, as stored now.
#[derive(Debug, Clone)]
pub struct CallerContext {
    pub caller: Caller,
    /// `None` for anonymous callers, for the hub itself, and if the account, sign-in or key no longer exists.
    pub auth: Option<Arc<AuthContext>>,
}

impl CallerContext {
    pub fn is_operator(&self) -> bool {
        self.caller.principal == Principal::Operator
    }

    /// Requires a signed-in user, or an API key with this scope. Callers with a grant are refused, so that by default
    /// they can do nothing; [`Self::on_path`], [`ReadView::at_room`] and [`ReadView::as_agent`] accept them.
    pub fn signed_in(&self, scope: Scope) -> Result<Arc<AuthContext>, Refusal> {
        let auth = self.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
        if auth.has(scope) { Ok(auth.clone()) } else { Err(Refusal::Forbidden) }
    }

    /// Whether a grant limits the caller.
    pub fn is_limited(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.is_limited())
    }

    /// Requires a user session, not an API key: for actions that a program must not perform for its owner.
    pub fn person(&self) -> Result<Arc<AuthContext>, Refusal> {
        let auth = self.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
        let is_person = auth.scopes.is_none() && !auth.is_limited();
        if is_person { Ok(auth.clone()) } else { Err(Refusal::Forbidden) }
    }

    /// Requires the right to an operation on a path outside of rooms: a grant that permits it within the scopes for
    /// reading and writing or, without a grant, the scope for sources.
    pub fn on_path(&self, operation: Operation, path: &Path) -> Result<Arc<AuthContext>, Refusal> {
        let auth = self.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
        let allowed = match auth.is_limited() {
            true => auth.is_within_scopes(scope_for(operation)) && auth.is_granted(operation, path),
            false => auth.has(Scope::Sources),
        };
        if allowed { Ok(auth.clone()) } else { Err(Refusal::Forbidden) }
    }

    /// Requires the right to an operation in a room: the scope for reading or writing, and the operation in every
    /// grant.
    fn granted_in_room(&self, operation: Operation, room: &RoomId) -> Result<Arc<AuthContext>, Refusal> {
        let auth = self.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
        if auth.is_permitted_in(operation, room) { Ok(auth.clone()) } else { Err(Refusal::Forbidden) }
    }

    pub fn is_authenticator(&self) -> bool {
        self.caller.principal == Principal::Authenticator
    }

    /// Requires the hub's authentication code, which alone reads credentials.
    pub fn authenticator(&self) -> Result<(), Refusal> {
        if self.is_authenticator() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Requires the hub itself or its operator at the command line.
    pub fn operator(&self) -> Result<(), Refusal> {
        if self.is_operator() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Requires the operator, a site admin or an API key of one with the scope for admins.
    pub fn site_admin(&self) -> Result<(), Refusal> {
        if self.is_operator() {
            return Ok(());
        }
        let auth = self.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
        if auth.is_site_admin() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Requires a site admin, or an API key with exactly this scope.
    pub fn site_admin_or_key(&self, scope: Scope) -> Result<(), Refusal> {
        let auth = self.auth.as_ref().ok_or(Refusal::NotSignedIn)?;
        if auth.has(scope) || auth.is_site_admin() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Requires a user who may create a router: any user for a private one, a site admin for a shared one.
    pub fn may_create_router(&self, shared: bool) -> Result<Arc<AuthContext>, Refusal> {
        if shared {
            self.site_admin()?;
        }
        self.signed_in(Scope::Write)
    }

    /// The caller as the audit log names it.
    pub fn actor(&self) -> Actor {
        let Some(auth) = &self.auth else {
            return if self.is_operator() { Actor::Operator } else { Actor::Nobody };
        };
        let (id, name) = (auth.user.id.clone(), auth.user.username.clone());
        match &self.caller.principal {
            Principal::Program { key, .. } => Actor::Program { id, name, key: key.clone() },
            _ => Actor::Person { id, name },
        }
    }
}

/// Scope that an API key needs for an operation in a room.
fn scope_for(operation: Operation) -> Scope {
    match operation {
        Operation::Publish | Operation::Presence => Scope::Write,
        Operation::Subscribe | Operation::History | Operation::Metadata | Operation::Statistics => {
            Scope::Read
        }
    }
}

/// Evidence that the caller is a member of a room, with the required role.
#[derive(Debug, Clone)]
pub struct InRoom {
    pub caller: Arc<AuthContext>,
    pub room: Arc<Room>,
    pub member: Arc<Member>,
}

/// Evidence that the caller has the token of an open invitation to a room.
#[derive(Debug, Clone)]
pub struct InvitedToRoom {
    pub caller: Arc<AuthContext>,
    pub invitation: RoomInvitation,
    pub room: Arc<Room>,
}

/// Whether a member with this role may add members with the role `given`: admins add members, and only the owner adds
/// admins.
pub fn may_give(own: RoomRole, given: RoomRole) -> bool {
    let is_below = given < own || own == RoomRole::Owner;
    own >= RoomRole::Admin && is_below && given != RoomRole::Owner
}

/// Evidence that the caller can see a message: it is in a room of the caller, who has not cleared it.
#[derive(Debug, Clone)]
pub struct SeenMessage {
    pub caller: Arc<AuthContext>,
    pub message: Arc<Message>,
    pub room: RoomId,
    pub member: Arc<Member>,
}

/// Evidence that a message is in a room of the caller, who may have cleared it.
#[derive(Debug, Clone)]
pub struct MessageInRoom {
    pub caller: Arc<AuthContext>,
    pub message: Arc<Message>,
    pub room: RoomId,
    pub member: Arc<Member>,
}

impl MessageInRoom {
    /// Whether the caller sent the message.
    pub fn is_own(&self) -> bool {
        self.message.sender.user() == Some(&self.caller.user.id)
    }
}
/// Evidence that the caller can see a run: it is in a room of the caller, or without a room in a session of an agent of
/// the caller.
#[derive(Debug, Clone)]
pub struct SeenRun {
    pub run: Run,
    /// Membership of the caller in the room of the run, if it has one.
    pub member: Option<Arc<Member>>,
}
/// Evidence that the caller owns an agent, or may act for its owner.
#[derive(Debug, Clone)]
pub struct OwnAgent {
    pub caller: Arc<AuthContext>,
    pub agent: Arc<Agent>,
}

/// Evidence that the caller owns a gateway.
#[derive(Debug, Clone)]
pub struct OwnGateway {
    pub caller: Arc<AuthContext>,
    pub gateway: Gateway,
}

/// Evidence that the caller may know of an agent.
#[derive(Debug, Clone)]
pub struct VisibleAgent {
    pub caller: Arc<AuthContext>,
    pub agent: Arc<Agent>,
}

/// Evidence that the caller may change a router.
#[derive(Debug, Clone)]
pub struct OwnRouter {
    pub router: Router,
}

/// Evidence that the caller may manage a service.
#[derive(Debug, Clone)]
pub struct ManagedService {
    pub agent: Arc<Agent>,
    pub service: Service,
}

/// Evidence that the caller is a member of the room of a task.
#[derive(Debug, Clone)]
pub struct SeenTask {
    pub caller: Arc<AuthContext>,
    pub task: Task,
    pub room: Arc<Room>,
    pub member: Arc<Member>,
}

impl SeenTask {
    /// Requires the task's creator, its assignee, or an admin of the room.
    pub fn require_control(&self) -> Result<(), Refusal> {
        let own = MemberId::User(self.caller.user.id.clone());
        let involved = self.task.created_by == own || self.task.assignee.as_ref() == Some(&own);
        if involved || self.member.role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }
}

/// Evidence that the caller may decide an approval.
#[derive(Debug, Clone)]
pub struct DecidableApproval {
    pub caller: Arc<AuthContext>,
    /// Room of the approval, if it has one.
    pub room: Option<Arc<Room>>,
    pub approval: Approval,
}

/// Whether a member may approve tool use by agents in a room: a user, not an agent, with at least the room's
/// `approve_role`.
pub fn may_approve(room: &Room, member: &Member) -> bool {
    member.member.user().is_some() && member.role >= room.approve_role
}

/// The room that a pattern names literally, if any.
pub fn room_named_by(pattern: &Pattern) -> Option<RoomId> {
    Path::stored(pattern.as_str()).strip_domain("room").and_then(|room| RoomId::parse(room).ok())
}

impl ReadView<'_> {
    /// Requires at least the role `least` in the room; refuses callers with a grant. A site admin who is not a member is refused like any
    /// other user.
    pub fn in_room(
        &mut self,
        caller: &CallerContext,
        room: &RoomId,
        least: RoomRole,
        scope: Scope,
    ) -> Result<InRoom, PermitError> {
        let caller = caller.signed_in(scope)?;
        self.member_of(caller, room, least)
    }

    /// Requires membership of the room and the operation there. Unlike [`Self::in_room`] it accepts callers with a
    /// grant that permits the operation.
    pub fn at_room(
        &mut self,
        caller: &CallerContext,
        operation: Operation,
        room: &RoomId,
    ) -> Result<InRoom, PermitError> {
        let caller = caller.granted_in_room(operation, room)?;
        self.member_of(caller, room, RoomRole::Member)
    }

    /// Requires membership of the room and at least one of the operations there.
    pub fn at_room_for_any(
        &mut self,
        caller: &CallerContext,
        operations: &[Operation],
        room: &RoomId,
    ) -> Result<InRoom, PermitError> {
        let mut granted = operations.iter().map(|operation| caller.granted_in_room(*operation, room));
        let caller = granted.find(Result::is_ok).unwrap_or(Err(Refusal::Forbidden))?;
        self.member_of(caller, room, RoomRole::Member)
    }

    fn member_of(
        &mut self,
        caller: Arc<AuthContext>,
        room: &RoomId,
        least: RoomRole,
    ) -> Result<InRoom, PermitError> {
        let room = self.room(room)?.ok_or(Refusal::NotFound(EntityKind::Room))?;
        match self.member(&room.id, &caller.user.id)? {
            None => Err(Refusal::NotAMember { room: room.id.clone() }.into()),
            Some(member) if member.role < least => Err(Refusal::Forbidden.into()),
            Some(member) => Ok(InRoom { caller, room, member }),
        }
    }

    /// Requires a message in a room that the caller is a member of and has not cleared. All other messages
    /// are `NotFound`.
    pub fn seen_message(
        &mut self,
        caller: &CallerContext,
        message: &MessageId,
        scope: Scope,
    ) -> Result<SeenMessage, PermitError> {
        let MessageInRoom { caller, message, room, member } =
            self.message_in_own_room(caller, message, scope)?;
        if message.seq > member.room_preferences.cleared_through {
            Ok(SeenMessage { caller, message, room, member })
        } else {
            Err(Refusal::NotFound(EntityKind::Message).into())
        }
    }

    /// Requires a message in a room that the caller is a member of, cleared or not. All other messages are
    /// `NotFound`.
    pub fn message_in_own_room(
        &mut self,
        caller: &CallerContext,
        message: &MessageId,
        scope: Scope,
    ) -> Result<MessageInRoom, PermitError> {
        // Checks the sign-in first, so that anonymous callers get the same refusal whether the message exists
        // or not.
        let caller = caller.signed_in(scope)?;
        let not_found = Refusal::NotFound(EntityKind::Message);
        let Some(message) = self.store.message(message)? else { return Err(not_found.into()) };
        let Some(room) = message.destination.room().cloned() else { return Err(not_found.into()) };
        match self.member(&room, &caller.user.id)? {
            Some(member) => Ok(MessageInRoom { caller, message, room, member }),
            None => Err(not_found.into()),
        }
    }

    /// Requires a run in a room that the caller is a member of, or without a room in a session of an agent of the
    /// caller. All other runs are `NotFound`.
    pub fn seen_run(
        &mut self,
        caller: &CallerContext,
        run: &RunId,
        scope: Scope,
    ) -> Result<SeenRun, PermitError> {
        let caller = caller.signed_in(scope)?;
        let not_found = Refusal::NotFound(EntityKind::Run);
        let Some(run) = self.store.run(run)? else { return Err(not_found.into()) };
        let member = match run.place.scope() {
            EventScope::Room(room) => self.member(room, &caller.user.id)?,
            EventScope::Owner(owner) if *owner == caller.user.id => return Ok(SeenRun { run, member: None }),
            _ => None,
        };
        match member {
            Some(member) => Ok(SeenRun { run, member: Some(member) }),
            None => Err(not_found.into()),
        }
    }

    /// Requires an agent that the caller owns. Another user's agent and a missing one yield the same refusal.
    pub fn own_agent(
        &mut self,
        caller: &CallerContext,
        id: &AgentId,
        scope: Scope,
    ) -> Result<OwnAgent, PermitError> {
        let caller = caller.signed_in(scope)?;
        match self.agent(id)? {
            Some(agent) if agent.owner == caller.user.id => Ok(OwnAgent { caller, agent }),
            _ => Err(Refusal::NotFound(EntityKind::Agent).into()),
        }
    }

    /// Requires an agent that the caller owns, or a program of this agent that may use the mailbox. Unlike
    /// [`Self::own_agent`] it accepts callers whose grant is of the agent. Any other agent or session yields the same
    /// refusal as a missing agent.
    pub fn as_agent(&mut self, caller: &CallerContext, mailbox: &Mailbox) -> Result<OwnAgent, PermitError> {
        let auth = caller.auth.clone().ok_or(Refusal::NotSignedIn)?;
        let Some(limit) = auth.agent_limit() else {
            return self.own_agent(caller, &mailbox.agent, Scope::Agents);
        };
        match self.agent(&mailbox.agent)?.filter(|_| limit.covers(mailbox)) {
            Some(agent) if agent.owner == auth.user.id => Ok(OwnAgent { caller: auth, agent }),
            _ => Err(Refusal::NotFound(EntityKind::Agent).into()),
        }
    }

    /// Requires an agent that the caller owns, or a site admin as the caller. Another user's agent and a missing one
    /// yield the same refusal.
    pub fn controlled_agent(
        &mut self,
        caller: &CallerContext,
        id: &AgentId,
        scope: Scope,
    ) -> Result<OwnAgent, PermitError> {
        let caller = caller.signed_in(scope)?;
        match self.agent(id)? {
            Some(agent) if agent.owner == caller.user.id || caller.is_site_admin() => {
                Ok(OwnAgent { caller, agent })
            }
            _ => Err(Refusal::NotFound(EntityKind::Agent).into()),
        }
    }

    /// Requires a gateway that the caller owns, not that of the hub itself. Another user's gateway and a missing
    /// one yield the same refusal.
    pub fn own_gateway(
        &mut self,
        caller: &CallerContext,
        id: &GatewayId,
        scope: Scope,
    ) -> Result<OwnGateway, PermitError> {
        let caller = caller.signed_in(scope)?;
        match self.store.gateway(id)? {
            Some(gateway) if gateway.owner == caller.user.id && gateway.id.as_str() != HUB => {
                Ok(OwnGateway { caller, gateway })
            }
            _ => Err(Refusal::NotFound(EntityKind::Gateway).into()),
        }
    }

    /// Requires an agent that the caller owns or that is shared with the caller.
    pub fn own_or_shared_agent(
        &mut self,
        caller: &CallerContext,
        id: &AgentId,
        scope: Scope,
    ) -> Result<Arc<Agent>, PermitError> {
        let caller = caller.signed_in(scope)?;
        let usable = |agent: &Agent| agent.owner == caller.user.id || agent.is_shared_with(&caller.user.id);
        match self.agent(id)? {
            Some(agent) if usable(&agent) => Ok(agent),
            _ => Err(Refusal::NotFound(EntityKind::Agent).into()),
        }
    }

    /// Requires an agent that the caller owns, that is shared with the caller, or that is in a common room.
    pub fn visible_agent(
        &mut self,
        caller: &CallerContext,
        id: &AgentId,
        scope: Scope,
    ) -> Result<VisibleAgent, PermitError> {
        let caller = caller.signed_in(scope)?;
        let not_found = Refusal::NotFound(EntityKind::Agent);
        let Some(agent) = self.agent(id)? else { return Err(not_found.into()) };
        let user = &caller.user.id;
        let visible = agent.owner == *user
            || agent.is_shared_with(user)
            || self.store.share_a_room(&MemberId::User(user.clone()), &MemberId::Agent(id.clone()))?;
        if visible { Ok(VisibleAgent { caller, agent }) } else { Err(not_found.into()) }
    }

    /// Requires an open invitation whose creator is still an admin, while the settings allow invitations.
    /// Wrong, used and revoked invitations yield the same refusal.
    pub fn open_invitation(&mut self, token: &SecretHash) -> Result<Invitation, PermitError> {
        let not_found = Refusal::NotFound(EntityKind::Invitation);
        let invites = self.store.settings()?.invites();
        let now = self.now;
        let open = self.store.invitation_with(token)?.filter(|found| invites && found.is_open(now));
        let Some(invitation) = open else { return Err(not_found.into()) };
        let may_invite = match &invitation.created_by {
            Some(creator) => self.user(creator)?.is_some_and(|creator| creator.role == SiteRole::Admin),
            None => true,
        };
        if may_invite { Ok(invitation) } else { Err(not_found.into()) }
    }

    /// Requires a signed-in caller with the token of an invitation to a room that has not expired and whose creator
    /// may still give the role. All other tokens yield the same refusal.
    pub fn open_room_invitation(
        &mut self,
        caller: &CallerContext,
        token: &SecretHash,
        scope: Scope,
    ) -> Result<InvitedToRoom, PermitError> {
        let caller = caller.signed_in(scope)?;
        let not_found = Refusal::NotFound(EntityKind::Invitation);
        let now = self.now;
        let open = self.store.room_invitation_with(token)?.filter(|found| now < found.expires_at);
        let Some(invitation) = open else { return Err(not_found.into()) };
        let Some(room) = self.room(&invitation.room)? else { return Err(not_found.into()) };
        let creator = self.member(&room.id, &invitation.created_by)?;
        match creator {
            Some(creator) if may_give(creator.role, invitation.role) => {
                Ok(InvitedToRoom { caller, invitation, room })
            }
            _ => Err(not_found.into()),
        }
    }

    /// Requires the token of an open invitation, or without a token that registration is open. Returns the
    /// invitation.
    pub fn registration(&mut self, token: Option<&SecretHash>) -> Result<Option<Invitation>, PermitError> {
        match token {
            Some(token) => self.open_invitation(token).map(Some),
            None if self.limits.open_registration => Ok(None),
            None => Err(Refusal::Forbidden.into()),
        }
    }

    /// Requires an agent that is a member of the room. Any other agent is `NotFound`.
    pub fn agent_in_room(&mut self, agent: &AgentId, room: &RoomId) -> Result<Member, PermitError> {
        let member = self.store.member(room, &MemberId::Agent(agent.clone()))?;
        Ok(member.ok_or(Refusal::NotFound(EntityKind::Agent))?)
    }

    /// Requires a service, and a site admin or the operator as the caller, whoever created the service.
    pub fn managed_service(
        &mut self,
        caller: &CallerContext,
        agent: &AgentId,
    ) -> Result<ManagedService, PermitError> {
        caller.site_admin()?;
        match (self.agent(agent)?, self.store.service(agent)?) {
            (Some(agent), Some(service)) => Ok(ManagedService { agent, service }),
            _ => Err(Refusal::NotFound(EntityKind::Service).into()),
        }
    }

    /// Requires a router that the caller created or, if it is shared, a site admin. Another user's router and a
    /// missing one yield the same refusal.
    pub fn own_router(
        &mut self,
        caller: &CallerContext,
        id: &RouterId,
        scope: Scope,
    ) -> Result<OwnRouter, PermitError> {
        let caller = caller.signed_in(scope)?;
        let own =
            |router: &Router| router.created_by == caller.user.id || router.shared && caller.is_site_admin();
        match self.store.router(id)? {
            Some(router) if own(&router) => Ok(OwnRouter { router }),
            _ => Err(Refusal::NotFound(EntityKind::Router).into()),
        }
    }

    /// Requires an agent that the caller owns. The operator acts for agents that the hub itself hosts.
    pub fn acting_agent(&mut self, caller: &CallerContext, id: &AgentId) -> Result<(), PermitError> {
        if caller.is_operator() {
            return Ok(());
        }
        self.own_agent(caller, id, Scope::Hosting).map(drop)
    }

    /// Requires a task in a room that the caller is a member of. All other tasks are `NotFound`.
    pub fn seen_task(
        &mut self,
        caller: &CallerContext,
        id: &TaskId,
        scope: Scope,
    ) -> Result<SeenTask, PermitError> {
        let caller = caller.signed_in(scope)?;
        let not_found = Refusal::NotFound(EntityKind::Task);
        let Some(task) = self.store.task(id)? else { return Err(not_found.into()) };
        let Some(room) = self.room(&task.room)? else { return Err(not_found.into()) };
        match self.member(&room.id, &caller.user.id)? {
            Some(member) => Ok(SeenTask { caller, task, room, member }),
            None => Err(not_found.into()),
        }
    }

    /// Requires an approval in a room where the caller may approve, or without a room of an agent of the caller; never
    /// for API keys, which the agent itself may hold. A missing approval and one that the caller may not decide yield the same refusal.
    pub fn decidable_approval(
        &mut self,
        caller: &CallerContext,
        id: &ApprovalId,
    ) -> Result<DecidableApproval, PermitError> {
        let caller = caller.person()?;
        let not_found = Refusal::NotFound(EntityKind::Approval);
        let Some(approval) = self.store.approval(id)? else { return Err(not_found.into()) };
        let room = match approval.place.scope() {
            EventScope::Owner(owner) if *owner == caller.user.id => None,
            EventScope::Room(room) => {
                let Some(room) = self.room(room)? else { return Err(not_found.into()) };
                match self.member(&room.id, &caller.user.id)? {
                    Some(member) if may_approve(&room, &member) => Some(room),
                    _ => return Err(not_found.into()),
                }
            }
            _ => return Err(not_found.into()),
        };
        Ok(DecidableApproval { caller, room, approval })
    }
}
