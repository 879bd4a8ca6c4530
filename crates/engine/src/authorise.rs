//! The only file that answers "may they?". Pure; what is not allowed here is refused.

use crate::decide::HUB;
use crate::facts::{AuthContext, Facts};
use parlor_model::command::{RoomChanges, UserChanges};
use parlor_model::query::AgentCards;
use parlor_model::{
    Agent, AgentId, Caller, Command, EntityKind, Gateway, GatewayId, Inquiry, Mailbox, Member, MemberId,
    Message, Mission, Path, Pattern, Principal, Query, Refusal, Room, RoomId, RoomRole, Router, Scope,
    Sender, SiteRole, Task, UploadPurpose, User, UserId, inquiry::is_within_folder,
};

pub fn authorise(caller: &Caller, command: &Command, facts: &Facts) -> Result<(), Refusal> {
    let ask = Authoriser { caller, facts };
    match command {
        Command::OfferSetup { .. } | Command::NoteBackup { .. } | Command::AppendNoop => ask.operator(),
        // The evidence is in the command itself and is weighed by its plan.
        Command::SetUp { .. }
        | Command::SignIn(_)
        | Command::SignInFailed { .. }
        | Command::Refresh { .. } => Ok(()),

        Command::CreateUser(_) | Command::RemoveUser { .. } => ask.site_admin(),
        Command::ChangeUser { changes, .. } => ask.change_user(changes),
        Command::ChangeSettings(_) => ask.site_admin(),
        Command::CreateInvitation(_) => {
            ask.site_admin()?;
            if facts.settings.invites() { Ok(()) } else { Err(Refusal::Forbidden) }
        }
        Command::RevokeInvitation { .. } => {
            ask.site_admin()?;
            facts.invitation.as_ref().map(|_| ()).ok_or(Refusal::NotFound(EntityKind::Invitation))
        }
        Command::Register { .. } => ask.invited(),
        // A key that could make others would not be limited.
        Command::OfferPairing { .. } => ask.person().map(|_| ()),
        Command::Pair { .. } => ask.paired(),
        Command::ChangeProfile(_) => ask.signed_in(Scope::Write).map(|_| ()),
        Command::ChangePassword { .. }
        | Command::OfferSecondFactor { .. }
        | Command::ConfirmSecondFactor { .. } => ask.person().map(|_| ()),
        Command::DropSecondFactor { user, .. } => ask.drop_second_factor(user),
        Command::EndSignIn { .. } => ask.own_sign_in(),
        Command::CreateKey { owner, scopes, .. } => ask.create_key(owner.as_ref(), scopes),
        Command::RevokeKey { .. } => ask.revoke_key(),

        Command::CreateRouter(new) => ask.make_router(new.shared),
        Command::ChangeRouter { changes, .. } => {
            ask.own_router(Scope::Write)?;
            if changes.shared == Some(true) { ask.site_admin() } else { Ok(()) }
        }
        Command::RemoveRouter { .. } => ask.own_router(Scope::Write),

        Command::CreateService(_) => {
            ask.site_admin()?;
            // Somebody answers for it.
            ask.signed_in(Scope::Admin).map(|_| ())
        }
        Command::ChangeService { .. } | Command::RemoveService { .. } => ask.service(),

        Command::CreateRoom { members, changes } => {
            ask.signed_in(Scope::Write)?;
            ask.give_router(changes)?;
            let agents = members.iter().any(|member| matches!(member, MemberId::Agent(_)));
            // Agents are added one by one, where their owner can be looked at.
            if agents { Err(Refusal::Forbidden) } else { Ok(()) }
        }
        Command::Chat { agent, .. } => {
            ask.signed_in(Scope::Write)?;
            ask.own_or_shared(agent)
        }
        Command::ChangeRoom { changes, .. } => {
            ask.role_in_room(RoomRole::Admin, Scope::Write)?;
            ask.give_router(changes)
        }
        Command::SetProjectRoot { .. } => ask.set_project_root(),
        Command::DeleteRoom { .. } => ask.role_in_room(RoomRole::Owner, Scope::Write).map(|_| ()),
        Command::Freeze { .. } => ask.freeze(),
        Command::Thaw { .. } => ask.thaw(),
        Command::AddMember { member, role, .. } => ask.add_member(member, *role),
        Command::ChangeMember { role, .. } => ask.change_member(*role),
        Command::RemoveMember { member, .. } => ask.remove_member(member),

        // It spends what the room may spend, again and again.
        Command::SetMission { .. } | Command::EndMission { .. } => {
            ask.role_in_room(RoomRole::Admin, Scope::Write)?;
            ask.end_mission()
        }
        Command::SetIdlePrompt { agent, room: None, .. } => ask.own_agent(agent),
        Command::SetIdlePrompt { room: Some(_), .. } => {
            ask.set_override()?;
            ask.agent_in_room()
        }
        Command::PromptIdle { .. } => ask.operator(),

        Command::CreateTask(new) => match &new.by {
            None => ask.role_in_room(RoomRole::Member, Scope::Write).map(|_| ()),
            Some(agent) => ask.agent_here(agent),
        },
        Command::ChangeTask { changes, .. } => ask.change_task(changes.is_status_alone()),
        Command::RemoveTask { .. } => ask.change_task(false),
        Command::ReportTask { agent, .. } => ask.report_task(agent),

        Command::Post(_) | Command::MarkRead { .. } | Command::ChangeRoomPreferences { .. } => {
            ask.role_in_room(RoomRole::Member, Scope::Write).map(|_| ())
        }
        Command::Edit { .. } => ask.edit(),
        Command::Delete { .. } => ask.delete(facts.message.as_deref(), facts.membership.as_deref()),
        Command::DeleteMany { .. } => {
            ask.signed_in(Scope::Write)?;
            facts.batch.iter().try_for_each(|(message, own)| ask.delete(message.as_deref(), own.as_deref()))
        }
        Command::Rewind { room, .. } => ask.rewind(room),
        Command::Forward { .. } => {
            ask.seen_message(facts.source.as_deref(), Scope::Write)?;
            ask.role_in_room(RoomRole::Member, Scope::Write).map(|_| ())
        }
        Command::React { .. } | Command::Pin { .. } | Command::Bookmark { .. } => {
            ask.seen_message(facts.membership.as_deref(), Scope::Write).map(|_| ())
        }
        Command::Unpin { .. } => ask.unpin(),
        // One's own marks are one's own, also where one may no longer look.
        Command::RemoveBookmark { .. } | Command::MarkAllRead => ask.signed_in(Scope::Write).map(|_| ()),

        Command::Upload(_) => ask.signed_in(Scope::Write).map(|_| ()),
        Command::TakeUnreferencedBlobs { .. } => ask.operator(),

        Command::CreateAgent { subscriptions, .. } => ask.create_agent(subscriptions),
        Command::ChangeAgent { id, .. } => ask.own_agent(id),
        Command::RemoveAgent { id } => {
            // Whoever runs the hub removes what lives in it.
            match ask.is_operator() && facts.agent.as_ref().is_some_and(lives_in_hub) {
                true => Ok(()),
                false => ask.own_agent(id),
            }
        }
        Command::ConnectGateway(new) => ask.connect_gateway(&new.id),
        Command::DisconnectGateway { .. } => {
            // The connection is over, also where whoever it belonged to may do nothing any more.
            if ask.is_operator() { ask.gateway().map(|_| ()) } else { ask.own_gateway(Scope::Hosting) }
        }
        Command::RemoveGateway { .. } => ask.own_gateway(Scope::Agents),
        Command::RegisterAgent(_) => ask.register_agent(),
        Command::HostAgent { owner, .. } => {
            ask.operator()?;
            facts.user.as_ref().ok_or(Refusal::NotFound(EntityKind::User))?;
            match &facts.agent {
                Some(_) => Ok(()),
                None => ask.family_of(owner),
            }
        }
        Command::Subscribe { mailbox, pattern } => ask.subscribe(mailbox, pattern),
        Command::Unsubscribe { mailbox, .. }
        | Command::Receive { mailbox, .. }
        | Command::Acknowledge { mailbox, .. } => ask.own_agent(&mailbox.agent),
        Command::Route(_) => ask.route(),
        Command::ClearDeadLetters => ask.dead_letters(),

        // Only the hub itself gives turns and ends them; who may host an agent was asked when it came.
        Command::StartRun { .. }
        | Command::MergeRun { .. }
        | Command::FinishRun(_)
        | Command::ReportUsage { .. } => ask.operator(),
        Command::StartUnpromptedRun { room, .. } | Command::PostLateReply { room, .. } => ask.speak(room),

        Command::AskApproval(_) | Command::ExpireApproval { .. } | Command::UpdatePlan { .. } => {
            ask.operator()
        }
        Command::DecidePlan { .. } => ask.judge_plan(),
        Command::DecideApproval(_) | Command::AnswerQuestions { .. } => ask.decide_approval(),
        Command::RevokeApprovalRule { .. } => ask.revoke_rule(),
    }
}

pub fn authorise_query(caller: &Caller, query: &Query, facts: &Facts) -> Result<(), Refusal> {
    let ask = Authoriser { caller, facts };
    match query {
        Query::Me | Query::Rooms | Query::Recent | Query::Bookmarks { .. } | Query::SearchUsers { .. } => {
            ask.signed_in(Scope::Read).map(|_| ())
        }
        Query::Search(search) => match search.room {
            None => ask.signed_in(Scope::Read).map(|_| ()),
            Some(_) => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        },
        Query::Agents | Query::OwnTasks { .. } => ask.signed_in(Scope::Read).map(|_| ()),
        Query::Gateways => ask.operator().or_else(|_| ask.signed_in(Scope::Read).map(|_| ())),
        Query::Users { .. } | Query::Invitations | Query::Audit(_) | Query::MaySeeLimits => ask.site_admin(),
        Query::Routers => ask.signed_in(Scope::Read).map(|_| ()),
        Query::MayMakeRouter { shared } => ask.make_router(*shared),
        Query::OwnRouter { .. } => ask.own_router(Scope::Write),
        Query::Services => ask.site_admin(),
        Query::Service { .. } => ask.service(),
        Query::MayRegister { .. } => ask.invited(),
        Query::Settings => ask.operator().or_else(|_| ask.signed_in(Scope::Read).map(|_| ())),
        Query::SignIns => ask.person().map(|_| ()),
        Query::Keys => ask.operator().or_else(|_| ask.person().map(|_| ())),
        Query::Room { .. }
        | Query::Members { .. }
        | Query::History { .. }
        | Query::Pins { .. }
        | Query::Tasks { .. }
        | Query::Approvals { .. }
        | Query::ApprovalRules { .. }
        | Query::MayFollow { .. } => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        Query::ProjectRoots => ask.site_admin(),
        Query::RoomsAt { room, .. } => ask.rooms_at(room.is_some()),
        Query::Workspace { .. } => ask.workspace(),
        Query::MayStop { .. } => ask.role_in_room(RoomRole::Member, Scope::Write).map(|_| ()),
        Query::Question { .. } => ask.decide_approval(),
        Query::Plans { room: Some(_) } => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        Query::Plans { room: None } => ask.signed_in(Scope::Read).map(|_| ()),
        Query::Questions => ask.signed_in(Scope::Read).map(|_| ()),
        Query::Run { .. } => ask.seen_run(),
        Query::Runs { room: Some(_), .. } => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        Query::Runs { room: None, .. } => ask.signed_in(Scope::Read).map(|_| ()),
        Query::Missions { .. } => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        Query::Idle { agent, room: None } => ask.known_agent(agent, Scope::Read),
        Query::Idle { room: Some(_), .. } => {
            ask.role_in_room(RoomRole::Member, Scope::Read)?;
            ask.agent_in_room()
        }
        Query::RunsOf { .. } | Query::Revisions { .. } | Query::Thread { .. } | Query::ReplyCount { .. } => {
            ask.seen_message(facts.membership.as_deref(), Scope::Read).map(|_| ())
        }
        Query::MayInquire { agent, room, inquiry } => ask.inquire(agent, room.is_some(), inquiry),
        Query::MaySpawn { .. } => ask.own_gateway(Scope::Agents),
        Query::MayManageCredentials { .. } => {
            // No program of theirs gets at what its owner's machine may use.
            ask.person()?;
            ask.own_gateway(Scope::Agents)
        }
        Query::MayListen { agent } => ask.own_agent(agent),
        Query::Agent { id } => ask.known_agent(id, Scope::Agents),
        Query::AgentCards(AgentCards::One(id))
        | Query::RunsBy { agent: id, .. }
        | Query::RoomsWith { agent: id } => ask.known_agent(id, Scope::Read),
        Query::AgentCards(AgentCards::Own | AgentCards::Shared { .. }) => {
            ask.signed_in(Scope::Read).map(|_| ())
        }
        Query::Upload { .. } => ask.read_upload(),
        Query::MayUpload => ask.signed_in(Scope::Write).map(|_| ()),
        Query::Subscriptions { mailbox } | Query::Mail { mailbox, .. } => ask.own_agent(&mailbox.agent),
        Query::DeadLetters { .. } => ask.dead_letters(),
        Query::MayReadMetrics => ask.admin_or_key_for(Scope::Metrics),
    }
}

/// Whether the agents of `owner` may hear what a source says on a path: those of the account behind the source, of
/// site admins, and of whoever an admin lets hear it.
pub fn may_receive_from_source(owner: &User, behind: Option<&UserId>, path: &Path) -> bool {
    let lets_hear = || owner.source_patterns.iter().any(|pattern| pattern.matches(path));
    behind == Some(&owner.id) || owner.role == SiteRole::Admin || lets_hear()
}

/// Whether somebody's word lets an agent use its tools in a room.
pub fn may_approve(room: &Room, member: &Member) -> bool {
    member.member.user().is_some() && member.role >= room.approve_role
}

/// The room whose messages a pattern asks for by name.
fn room_of(pattern: &Pattern) -> Option<RoomId> {
    Path::stored(pattern.as_str()).strip_domain("room").and_then(|room| RoomId::parse(room).ok())
}

struct Authoriser<'a> {
    caller: &'a Caller,
    facts: &'a Facts,
}

impl<'a> Authoriser<'a> {
    fn is_operator(&self) -> bool {
        self.caller.principal == Principal::Operator
    }

    fn operator(&self) -> Result<(), Refusal> {
        if self.is_operator() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn signed_in(&self, scope: Scope) -> Result<&'a AuthContext, Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        if standing.has(scope) { Ok(standing) } else { Err(Refusal::Forbidden) }
    }

    /// What a program must not do for its owner: passwords, devices, further keys.
    fn person(&self) -> Result<&'a AuthContext, Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        if standing.scopes.is_none() { Ok(standing) } else { Err(Refusal::Forbidden) }
    }

    fn site_admin(&self) -> Result<(), Refusal> {
        if self.is_operator() {
            return Ok(());
        }
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        if standing.is_site_admin() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// A program that sets a password signs in with it, and is a person from then on.
    fn change_user(&self, changes: &UserChanges) -> Result<(), Refusal> {
        self.site_admin()?;
        let by_program = !self.is_operator() && self.person().is_err();
        if by_program && changes.password_hash.is_some() { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    /// By an invitation that is open still, of somebody who may still invite. A wrong one, a spent one and one
    /// that was taken back are told alike.
    fn invited(&self) -> Result<(), Refusal> {
        let refused = Err(Refusal::NotFound(EntityKind::Invitation));
        let Some(invitation) = &self.facts.invitation else { return refused };
        let inviter = self.facts.user.as_ref();
        let may_invite =
            invitation.created_by.is_none() || inviter.is_some_and(|inviter| inviter.role == SiteRole::Admin);
        let good = invitation.is_open(self.facts.now) && may_invite && self.facts.settings.invites();
        if good { Ok(()) } else { refused }
    }

    /// By a code that is on offer still, of somebody who is still there. Every other is told alike.
    fn paired(&self) -> Result<(), Refusal> {
        let open = self.facts.pairing.as_ref().is_some_and(|pairing| pairing.expires_at > self.facts.now);
        match (open, &self.facts.user) {
            (true, Some(_)) => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Pairing)),
        }
    }

    /// Anybody for themselves, site admins for everybody.
    fn make_router(&self, shared: bool) -> Result<(), Refusal> {
        if shared {
            self.site_admin()?;
        }
        self.signed_in(Scope::Write).map(|_| ())
    }

    /// Who made it, and site admins where it is for everybody. Somebody else's and none at all are told alike.
    fn own_router(&self, scope: Scope) -> Result<(), Refusal> {
        let standing = self.signed_in(scope)?;
        let own = |router: &Router| {
            router.created_by == standing.user.id || router.shared && standing.is_site_admin()
        };
        match &self.facts.router {
            Some(router) if own(router) => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Router)),
        }
    }

    /// A room gets one's own router, or one for everybody.
    fn give_router(&self, changes: &RoomChanges) -> Result<(), Refusal> {
        let Some(Some(_)) = &changes.router else { return Ok(()) };
        let standing = self.signed_in(Scope::Write)?;
        match &self.facts.router {
            Some(router) if router.shared || router.created_by == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Router)),
        }
    }

    /// Site admins set up what answers from within the hub, whoever made it.
    fn service(&self) -> Result<(), Refusal> {
        self.site_admin()?;
        match (&self.facts.agent, &self.facts.service) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Service)),
        }
    }

    fn own_sign_in(&self) -> Result<(), Refusal> {
        let standing = self.person()?;
        match &self.facts.sign_in {
            Some(sign_in) if sign_in.user == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::SignIn)),
        }
    }

    fn drop_second_factor(&self, user: &UserId) -> Result<(), Refusal> {
        if self.is_operator() {
            return self.facts.user.as_ref().map(|_| ()).ok_or(Refusal::NotFound(EntityKind::User));
        }
        let own = self.person()?.user.id == *user;
        if own { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn create_key(&self, owner: Option<&UserId>, scopes: &[Scope]) -> Result<(), Refusal> {
        // A key may not do more than its owner: only admins speak as a source themselves.
        let admins_only = scopes.iter().any(|scope| scope.is_for_admins() && *scope != Scope::Admin);
        if self.is_operator() {
            return match &self.facts.user {
                Some(user) if admins_only && user.role != SiteRole::Admin => {
                    Err(Refusal::invalid("scope", "sources, dead-letters and metrics are for keys of admins"))
                }
                Some(_) => Ok(()),
                None => Err(Refusal::NotFound(EntityKind::User)),
            };
        }
        let standing = self.person()?;
        let for_another = owner.is_some_and(|owner| *owner != standing.user.id);
        let beyond = admins_only && !standing.is_site_admin();
        if for_another || beyond { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    fn revoke_key(&self) -> Result<(), Refusal> {
        if !self.is_operator() {
            let standing = self.person()?;
            let own = self.facts.key.as_ref().is_some_and(|key| key.owner == standing.user.id);
            return if own { Ok(()) } else { Err(Refusal::NotFound(EntityKind::Key)) };
        }
        self.facts.key.as_ref().map(|_| ()).ok_or(Refusal::NotFound(EntityKind::Key))
    }

    /// A room's own people decide about it; a site admin who is not a member is an outsider to it.
    fn role_in_room(&self, least: RoomRole, scope: Scope) -> Result<RoomRole, Refusal> {
        self.signed_in(scope)?;
        let room = self.facts.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
        match &self.facts.membership {
            None => Err(Refusal::NotAMember { room: room.id.clone() }),
            Some(membership) if membership.role < least => Err(Refusal::Forbidden),
            Some(membership) => Ok(membership.role),
        }
    }

    /// What lies there is shown to the room: for site admins who are in it, and whoever runs the hub, among the folders
    /// that were set free when it was started.
    fn set_project_root(&self) -> Result<(), Refusal> {
        if self.is_operator() {
            self.facts.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
        } else {
            self.role_in_room(RoomRole::Member, Scope::Admin)?;
        }
        if self.facts.root_allowed { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// The mission of another room with the same folder is not ended from here, unless by a site admin.
    fn end_mission(&self) -> Result<(), Refusal> {
        let elsewhere = |mission: &Mission| {
            mission.is_on() && self.facts.room.as_ref().is_none_or(|room| room.id != mission.room)
        };
        if self.facts.mission.as_ref().is_some_and(elsewhere) { self.site_admin() } else { Ok(()) }
    }

    /// For admins of the room. Where it holds in every room that is about a folder: for who set the mission that is on
    /// there, and for site admins.
    fn set_override(&self) -> Result<(), Refusal> {
        let own = &self.signed_in(Scope::Write)?.user.id;
        let about_folder = self.facts.room.as_ref().is_some_and(|room| room.project_root.is_some());
        if about_folder && self.site_admin().is_ok() {
            return self.role_in_room(RoomRole::Member, Scope::Write).map(|_| ());
        }
        self.role_in_room(RoomRole::Admin, Scope::Write)?;
        let set = self.facts.mission.as_ref().is_some_and(|it| it.is_on() && it.created_by == *own);
        if set || !about_folder { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// For the room's own people, while the folder is one that is set free: it may have been taken back since.
    fn workspace(&self) -> Result<(), Refusal> {
        self.role_in_room(RoomRole::Member, Scope::Read)?;
        let about = self.facts.room.as_ref().and_then(|room| room.project_root.as_ref());
        match about {
            None => Err(Refusal::NotFound(EntityKind::ProjectRoot)),
            Some(_) if self.facts.root_allowed => Ok(()),
            Some(_) => Err(Refusal::Forbidden),
        }
    }

    /// Only where the caller is in a room that is about it, and while it is set free. Every other folder is told alike, be
    /// it there or not.
    fn rooms_at(&self, in_one: bool) -> Result<(), Refusal> {
        self.signed_in(Scope::Read)?;
        if in_one {
            self.role_in_room(RoomRole::Member, Scope::Read)?;
        }
        let about = self.facts.root_allowed && !self.facts.memberships.is_empty();
        if about { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Anybody in the room may say stop, and whoever runs the hub; a program may not.
    fn freeze(&self) -> Result<(), Refusal> {
        if self.is_operator() {
            return self.facts.room.as_ref().map(|_| ()).ok_or(Refusal::NotFound(EntityKind::Room));
        }
        self.person()?;
        self.role_in_room(RoomRole::Member, Scope::Write).map(|_| ())
    }

    /// For who froze it, and for admins of the room.
    fn thaw(&self) -> Result<(), Refusal> {
        self.freeze()?;
        if self.is_operator() {
            return Ok(());
        }
        let own = self.person()?.user.id.clone();
        let froze = self.facts.room.as_ref().and_then(|room| room.frozen.as_ref()?.by.clone()) == Some(own);
        let role = self.role_in_room(RoomRole::Member, Scope::Write)?;
        if froze || role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn add_member(&self, member: &MemberId, role: RoomRole) -> Result<(), Refusal> {
        let own = self.role_in_room(RoomRole::Admin, Scope::Write)?;
        if role >= own && own != RoomRole::Owner || role == RoomRole::Owner {
            return Err(Refusal::Forbidden);
        }
        match member {
            MemberId::User(_) => Ok(()),
            // Whoever brings an agent into a room answers for it, or was given it by who does.
            MemberId::Agent(agent) => self.own_or_shared(agent),
        }
    }

    /// The owner decides about roles, admins about what is said of them.
    fn change_member(&self, role: Option<RoomRole>) -> Result<(), Refusal> {
        let least = if role.is_some() { RoomRole::Owner } else { RoomRole::Admin };
        let own = self.role_in_room(least, Scope::Write)?;
        let target = self.facts.target.as_ref().ok_or(Refusal::NotFound(EntityKind::Member))?;
        let Some(role) = role else { return Ok(()) };
        if target.role >= own {
            return Err(Refusal::LastOneRequired(EntityKind::Room));
        }
        let agent_owner = role == RoomRole::Owner && target.member.agent().is_some();
        if agent_owner { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    fn remove_member(&self, member: &MemberId) -> Result<(), Refusal> {
        let own = self.role_in_room(RoomRole::Member, Scope::Write)?;
        let standing = self.signed_in(Scope::Write)?;
        let target = self.facts.target.as_ref().ok_or(Refusal::NotFound(EntityKind::Member))?;
        if target.role == RoomRole::Owner {
            return Err(Refusal::LastOneRequired(EntityKind::Room));
        }
        let leaves = member.user() == Some(&standing.user.id);
        let takes_own_agent_away = self.facts.owner_of_agent() == Some(&standing.user.id);
        let outranks = own >= RoomRole::Admin && own > target.role;
        if leaves || takes_own_agent_away || outranks { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// A message of a room that the caller is in, unless they cleared it away. To everybody else it does not
    /// exist.
    fn seen_message(&self, own: Option<&Member>, scope: Scope) -> Result<RoomRole, Refusal> {
        // Who asks comes first: to an outsider every message looks alike.
        self.signed_in(scope)?;
        match (&self.facts.message, own) {
            (Some(message), Some(own)) if message.seq > own.room_preferences.cleared_through => Ok(own.role),
            _ => Err(Refusal::NotFound(EntityKind::Message)),
        }
    }

    /// A turn in a room that the caller is in. To everybody else it does not exist.
    fn seen_run(&self) -> Result<(), Refusal> {
        self.signed_in(Scope::Read)?;
        match (&self.facts.run, &self.facts.membership) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Run)),
        }
    }

    fn edit(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let (Some(message), Some(_)) = (&self.facts.message, &self.facts.membership) else {
            return Err(Refusal::NotFound(EntityKind::Message));
        };
        let own = message.sender.user() == Some(&standing.user.id);
        // Nobody puts words into the mouth of whom they quote.
        if own && message.forwarded.is_none() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// For the sender, and for admins of the room.
    fn delete(&self, message: Option<&Message>, membership: Option<&Member>) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let (Some(message), Some(membership)) = (message, membership) else {
            return Err(Refusal::NotFound(EntityKind::Message));
        };
        let own = message.sender.user() == Some(&standing.user.id);
        if own || membership.role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// One's own agent; those that live in the hub act through it.
    fn acting_agent(&self, agent: &AgentId) -> Result<(), Refusal> {
        if self.is_operator() {
            return Ok(());
        }
        self.signed_in(Scope::Hosting)?;
        self.own_agent_of(agent)
    }

    /// One's own agent, which is a member of the room.
    fn agent_here(&self, agent: &AgentId) -> Result<(), Refusal> {
        self.acting_agent(agent)?;
        let room = self.facts.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
        match self.facts.target {
            Some(_) => Ok(()),
            None => Err(Refusal::NotAMember { room: room.id.clone() }),
        }
    }

    /// The agent that is meant is a member of the room that is meant.
    fn agent_in_room(&self) -> Result<(), Refusal> {
        self.facts.target.as_ref().map(|_| ()).ok_or(Refusal::NotFound(EntityKind::Agent))
    }

    fn task(&self) -> Result<&'a Task, Refusal> {
        self.facts.task.as_ref().ok_or(Refusal::NotFound(EntityKind::Task))
    }

    /// How far a task is, any member of its room may say; the rest is for who made it, who has it, and room admins.
    fn change_task(&self, status_alone: bool) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let (task, own) = (self.task()?, MemberId::User(standing.user.id.clone()));
        let role = self.facts.membership.as_ref().ok_or(Refusal::NotFound(EntityKind::Task))?.role;
        let involved = task.created_by == own || task.assignee.as_ref() == Some(&own);
        if status_alone || involved || role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Of its own task, while it is in the room.
    fn report_task(&self, agent: &AgentId) -> Result<(), Refusal> {
        self.acting_agent(agent)?;
        let given = self.task()?.assignee.as_ref().and_then(MemberId::agent) == Some(agent);
        if given && self.facts.target.is_some() { Ok(()) } else { Err(Refusal::NotFound(EntityKind::Task)) }
    }

    /// From one's own message on. What follows goes too: it answers what was said, unless it is other people's, and then
    /// only admins take it away.
    fn rewind(&self, room: &RoomId) -> Result<(), Refusal> {
        let role = self.seen_message(self.facts.membership.as_deref(), Scope::Write)?;
        let standing = self.signed_in(Scope::Write)?;
        let (Some(message), Some(found)) = (&self.facts.message, &self.facts.room) else {
            return Err(Refusal::NotFound(EntityKind::Message));
        };
        if found.id != *room {
            return Err(Refusal::NotFound(EntityKind::Message));
        }
        let own = |message: &Message| message.sender.user() == Some(&standing.user.id);
        let answer = |message: &Message| matches!(message.sender, Sender::Agent(_));
        let of_others = self.facts.messages_from_target.iter().any(|later| !own(later) && !answer(later));
        let least = if of_others { RoomRole::Admin } else { RoomRole::Member };
        let may = own(message) && role >= least.max(found.agent_command_role);
        if may { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// For who pinned it, and for admins of the room.
    fn unpin(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let role = self.seen_message(self.facts.membership.as_deref(), Scope::Write)?;
        let pin = self.facts.pin.as_ref().ok_or(Refusal::NotFound(EntityKind::Pin))?;
        if pin.by == standing.user.id || role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// What is on a message is seen by those who see the message now, what waits for one by its owner alone.
    fn read_upload(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Read)?;
        let upload = self.facts.uploads.first().ok_or(Refusal::NotFound(EntityKind::Upload))?;
        match &upload.purpose {
            UploadPurpose::Avatar => Ok(()),
            UploadPurpose::Unattached if upload.owner == standing.user.id => Ok(()),
            UploadPurpose::Unattached => Err(Refusal::NotFound(EntityKind::Upload)),
            UploadPurpose::Message(_) => {
                let seen = self.seen_message(self.facts.membership.as_deref(), Scope::Read);
                seen.map(|_| ()).map_err(|_| Refusal::NotFound(EntityKind::Upload))
            }
        }
    }

    /// Names above and below somebody's agent are that person's. A new agent is in no room yet.
    fn create_agent(&self, subscriptions: &[Pattern]) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Agents)?;
        self.family_of(&standing.user.id)?;
        match subscriptions.iter().find_map(room_of) {
            Some(room) => Err(Refusal::NotAMember { room }),
            None => Ok(()),
        }
    }

    /// The agents above and below a new one are all this person's.
    fn family_of(&self, owner: &UserId) -> Result<(), Refusal> {
        match self.facts.relatives.iter().all(|agent| agent.owner == *owner) {
            true => Ok(()),
            false => Err(Refusal::Forbidden),
        }
    }

    fn gateway(&self) -> Result<&'a Gateway, Refusal> {
        self.facts.gateway.as_ref().ok_or(Refusal::NotFound(EntityKind::Gateway))
    }

    fn connect_gateway(&self, id: &GatewayId) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Hosting)?;
        match &self.facts.gateway {
            // Whoever took it could have the hub itself start agents, and ask it for credentials.
            _ if id.as_str() == HUB => Err(Refusal::BelongsToAnother(EntityKind::Gateway)),
            Some(gateway) if gateway.owner != standing.user.id => {
                Err(Refusal::BelongsToAnother(EntityKind::Gateway))
            }
            _ => Ok(()),
        }
    }

    /// Somebody else's and none at all are told alike.
    fn own_gateway(&self, scope: Scope) -> Result<(), Refusal> {
        let standing = self.signed_in(scope)?;
        let gateway = self.gateway()?;
        let own = gateway.owner == standing.user.id && gateway.id.as_str() != HUB;
        if own { Ok(()) } else { Err(Refusal::NotFound(EntityKind::Gateway)) }
    }

    /// Through one's own gateway: one's own agent, or one that nobody has yet.
    fn register_agent(&self) -> Result<(), Refusal> {
        self.own_gateway(Scope::Hosting)?;
        let standing = self.signed_in(Scope::Hosting)?;
        match &self.facts.agent {
            // What lives in the hub is for no gateway to take over, not even its owner's.
            Some(agent) if agent.owner == standing.user.id && !lives_in_hub(agent) => Ok(()),
            Some(_) => Err(Refusal::BelongsToAnother(EntityKind::Agent)),
            None => self.family_of(&standing.user.id),
        }
    }

    /// A room is listened to by its members; patterns that only may match one are looked at with each message.
    fn subscribe(&self, mailbox: &Mailbox, pattern: &Pattern) -> Result<(), Refusal> {
        self.own_agent(&mailbox.agent)?;
        match room_of(pattern) {
            Some(room) if self.facts.target.is_none() => Err(Refusal::NotAMember { room }),
            _ => Ok(()),
        }
    }

    /// What reached nobody may have been meant for anybody: for admins, and keys made for it.
    fn dead_letters(&self) -> Result<(), Refusal> {
        self.admin_or_key_for(Scope::DeadLetters)
    }

    /// Site admins, and keys that were made for just this.
    fn admin_or_key_for(&self, scope: Scope) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        let may = standing.has(scope) || standing.is_site_admin();
        if may { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn own_agent(&self, agent: &AgentId) -> Result<(), Refusal> {
        self.signed_in(Scope::Agents)?;
        self.own_agent_of(agent)
    }

    /// One's own, one that is shared with the caller, or one in a common room.
    fn known_agent(&self, agent: &AgentId, scope: Scope) -> Result<(), Refusal> {
        self.signed_in(scope)?;
        if self.facts.agent_visible { Ok(()) } else { self.own_agent_of(agent) }
    }

    fn own_or_shared(&self, agent: &AgentId) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        match &self.facts.agent {
            Some(found) if found.id == *agent && found.is_shared_with(&standing.user.id) => Ok(()),
            _ => self.own_agent_of(agent),
        }
    }

    /// Somebody else's agent and no agent at all are told alike.
    fn own_agent_of(&self, agent: &AgentId) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        match &self.facts.agent {
            Some(found) if found.id == *agent && found.owner == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Agent)),
        }
    }

    /// Of an agent in one's room; how it is, its owner may ask anywhere, and everybody who shares a room with it.
    fn inquire(&self, agent: &AgentId, in_room: bool, inquiry: &Inquiry) -> Result<(), Refusal> {
        let scope = if *inquiry == Inquiry::Info { Scope::Read } else { Scope::Write };
        let standing = self.signed_in(scope)?;
        let unknown = Err(Refusal::NotFound(EntityKind::Agent));
        let about_itself = *inquiry == Inquiry::Info;
        if about_itself && self.facts.owner_of_agent() == Some(&standing.user.id) {
            return self.own_agent_of(agent);
        }
        if about_itself && !in_room {
            return if self.facts.agent_visible { Ok(()) } else { unknown };
        }
        let role = self.role_in_room(RoomRole::Member, scope)?;
        let (Some(room), Some(found), Some(_)) = (&self.facts.room, &self.facts.agent, &self.facts.target)
        else {
            return unknown;
        };
        match inquiry {
            Inquiry::Info => Ok(()),
            Inquiry::Command { .. } if role < room.agent_command_role || room.is_frozen() => {
                Err(Refusal::Forbidden)
            }
            Inquiry::Command { .. } => Ok(()),
            Inquiry::Workspace(look) => {
                let folder = found.host.working_directory.as_deref();
                let within = look.path().is_none_or(|path| is_within_folder(folder, path));
                if within { Ok(()) } else { Err(Refusal::invalid("path", "must lie in the agent's folder")) }
            }
        }
    }

    /// An agent speaks up where it is a member.
    fn speak(&self, room: &RoomId) -> Result<(), Refusal> {
        self.operator()?;
        match (&self.facts.room, &self.facts.target) {
            (None, _) => Err(Refusal::NotFound(EntityKind::Room)),
            (Some(_), None) => Err(Refusal::NotAMember { room: room.clone() }),
            (Some(_), Some(_)) => Ok(()),
        }
    }

    /// Only a person who is in the room now: never a program, which may be the agent itself. What there is not and what
    /// one may not answer are told alike.
    fn decide_approval(&self) -> Result<(), Refusal> {
        self.person()?;
        let may = match (&self.facts.approval, &self.facts.room, &self.facts.membership) {
            (Some(_), Some(room), Some(own)) => may_approve(room, own),
            _ => false,
        };
        if may { Ok(()) } else { Err(Refusal::NotFound(EntityKind::Approval)) }
    }

    /// A plan is a wish to use tools: for who may allow these.
    fn judge_plan(&self) -> Result<(), Refusal> {
        self.person()?;
        self.role_in_room(RoomRole::Member, Scope::Write)?;
        match (&self.facts.room, &self.facts.membership) {
            (Some(room), Some(own)) if may_approve(room, own) => Ok(()),
            _ => Err(Refusal::Forbidden),
        }
    }

    /// For who made it, and for admins of the room.
    fn revoke_rule(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let role = self.role_in_room(RoomRole::Member, Scope::Write)?;
        let rule = self.facts.rule.as_ref().ok_or(Refusal::NotFound(EntityKind::ApprovalRule))?;
        if rule.by == standing.user.id || role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// `from` is an agent of the caller's, or a source name for admins and keys with that scope.
    fn route(&self) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        let to_room = self.facts.room.as_ref();
        match &self.facts.agent {
            Some(agent) => {
                self.own_agent(&agent.id)?;
                match to_room {
                    Some(room) if self.facts.target.is_none() => {
                        Err(Refusal::NotAMember { room: room.id.clone() })
                    }
                    _ => Ok(()),
                }
            }
            // Not even one who may name a source speaks as a person.
            None if self.facts.user.is_some() => Err(Refusal::NotFound(EntityKind::Agent)),
            None => {
                match to_room {
                    _ if !standing.has(Scope::Sources) => Err(Refusal::NotFound(EntityKind::Agent)),
                    // A source is nobody's member.
                    Some(room) => Err(Refusal::NotAMember { room: room.id.clone() }),
                    None => Ok(()),
                }
            }
        }
    }
}

fn lives_in_hub(agent: &Agent) -> bool {
    agent.host.gateway.as_ref().is_some_and(|gateway| gateway.as_str() == HUB)
}
