//! Permission checks for every command and query: the only file that decides whether a caller may do
//! something.
//!
//! Pure: reads only the loaded `Facts`. Default deny: each command and query has an explicit rule. Where the
//! existence of a thing is secret, a thing that is hidden from the caller and a missing one yield the same
//! refusal.

use crate::facts::{AuthContext, Facts};
use crate::permission::room_named_by;
use parlor_model::command::{RoomChanges, UserChanges};
use parlor_model::{
    AgentId, Caller, Command, Edit, EntityKind, Mailbox, Member, MemberId, Path, Pattern, Principal, Query,
    Refusal, RoomRole, Scope, SiteRole, UploadPurpose, User, UserId,
};

pub fn authorise(caller: &Caller, command: &Command, facts: &Facts) -> Result<(), Refusal> {
    let ask = Authoriser { caller, facts };
    match command {
        Command::OfferSetup { .. } | Command::NoteBackup { .. } | Command::AppendNoop => ask.operator(),
        // Carries its own evidence, the setup secret, which `decide` checks.
        Command::SetUp { .. } => Ok(()),

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
        // Not for API keys: a key that could create further keys would not be limited by its scopes.
        Command::OfferPairing { .. } => ask.person().map(|_| ()),
        Command::Pair { .. } => ask.paired(),
        Command::ChangeProfile(_) => ask.signed_in(Scope::Write).map(|_| ()),
        Command::ChangePassword { .. } => ask.person().map(|_| ()),

        Command::CreateRoom { members, changes } => {
            ask.signed_in(Scope::Write)?;
            ask.give_router(changes)?;
            let agents = members.iter().any(|member| matches!(member, MemberId::Agent(_)));
            // Agents are added with `AddMember`, which checks their owner.
            if agents { Err(Refusal::Forbidden) } else { Ok(()) }
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

        Command::ChangeRoomPreferences { .. } => ask.role_in_room(RoomRole::Member, Scope::Write).map(|_| ()),
        Command::Upload(_) => ask.signed_in(Scope::Write).map(|_| ()),
        Command::TakeUnreferencedBlobs { .. } => ask.operator(),

        Command::Subscribe { mailbox, pattern } => ask.subscribe(mailbox, pattern),
        Command::Unsubscribe { mailbox, .. }
        | Command::Receive { mailbox, .. }
        | Command::Acknowledge { mailbox, .. } => ask.own_agent(&mailbox.agent),
        Command::Route(_) => ask.route(),
        Command::Relay(_) => ask.relay(),
        Command::ClearDeadLetters => ask.dead_letters(),
    }
}

pub fn authorise_query(caller: &Caller, query: &Query, facts: &Facts) -> Result<(), Refusal> {
    let ask = Authoriser { caller, facts };
    match query {
        Query::Me | Query::Rooms | Query::SearchUsers { .. } => ask.signed_in(Scope::Read).map(|_| ()),
        Query::Users { .. } | Query::Invitations | Query::Audit(_) | Query::MaySeeLimits => ask.site_admin(),
        Query::MayRegister { .. } => ask.invited(),
        Query::Settings => ask.operator().or_else(|_| ask.signed_in(Scope::Read).map(|_| ())),
        Query::Room { .. } | Query::Members { .. } | Query::MayFollow { .. } => {
            ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ())
        }
        Query::ProjectRoots => ask.site_admin(),
        Query::RoomsAt { room, .. } => ask.rooms_at(room.is_some()),
        Query::Workspace { .. } => ask.workspace(),
        Query::MayListen { agent } => ask.own_agent(agent),
        Query::RoomsWith { agent: id } => ask.known_agent(id, Scope::Read),
        Query::Upload { .. } => ask.read_upload(),
        Query::MayUpload => ask.signed_in(Scope::Write).map(|_| ()),
        Query::Subscriptions { mailbox } | Query::Mail { mailbox, .. } => ask.own_agent(&mailbox.agent),
        Query::DeadLetters { .. } => ask.dead_letters(),
        Query::MayReadMetrics => ask.admin_or_key_for(Scope::Metrics),
    }
}

/// Whether agents of `owner` may receive messages that a source publishes on a path. True for the account
/// behind the source, for site admins, and for users with a matching `source_patterns` entry, which an admin
/// grants.
pub fn may_receive_from_source(owner: &User, behind: Option<&UserId>, path: &Path) -> bool {
    let is_granted = || owner.source_patterns.iter().any(|pattern| pattern.matches(path));
    behind == Some(&owner.id) || owner.role == SiteRole::Admin || is_granted()
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

    /// Requires a user session, not an API key: for passwords, sign-ins, further keys and other actions that
    /// a program must not perform for its owner.
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

    /// Allowed for site admins. API keys may not set passwords: a program could sign in with one and escape
    /// its scopes.
    fn change_user(&self, changes: &UserChanges) -> Result<(), Refusal> {
        self.site_admin()?;
        let by_program = !self.is_operator() && self.person().is_err();
        if by_program && changes.password_hash.is_some() { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    /// Requires an open invitation whose creator is still an admin. Wrong, used and revoked invitations yield
    /// the same refusal.
    fn invited(&self) -> Result<(), Refusal> {
        let refused = Err(Refusal::NotFound(EntityKind::Invitation));
        let Some(invitation) = &self.facts.invitation else { return refused };
        let inviter = self.facts.user.as_ref();
        let may_invite =
            invitation.created_by.is_none() || inviter.is_some_and(|inviter| inviter.role == SiteRole::Admin);
        let good = invitation.is_open(self.facts.now) && may_invite && self.facts.settings.invites();
        if good { Ok(()) } else { refused }
    }

    /// Requires an unexpired pairing code of an existing account. All other codes yield the same refusal.
    fn paired(&self) -> Result<(), Refusal> {
        let open = self.facts.pairing.as_ref().is_some_and(|pairing| pairing.expires_at > self.facts.now);
        match (open, &self.facts.user) {
            (true, Some(_)) => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Pairing)),
        }
    }

    /// A room may be assigned a shared router or one that the caller created.
    fn give_router(&self, changes: &RoomChanges) -> Result<(), Refusal> {
        let Edit::Set(_) = &changes.router else { return Ok(()) };
        let standing = self.signed_in(Scope::Write)?;
        match &self.facts.router {
            Some(router) if router.shared || router.created_by == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Router)),
        }
    }

    /// Requires at least the role `least` in the room. A site admin who is not a member is refused like any
    /// other user.
    fn role_in_room(&self, least: RoomRole, scope: Scope) -> Result<RoomRole, Refusal> {
        self.signed_in(scope)?;
        let room = self.facts.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
        match &self.facts.membership {
            None => Err(Refusal::NotAMember { room: room.id.clone() }),
            Some(membership) if membership.role < least => Err(Refusal::Forbidden),
            Some(membership) => Ok(membership.role),
        }
    }

    /// Allowed for the operator and for site admins who are members, because the folder's content becomes
    /// visible to the room. Only folders allowed by the `project_roots` setting.
    fn set_project_root(&self) -> Result<(), Refusal> {
        if self.is_operator() {
            self.facts.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
        } else {
            self.role_in_room(RoomRole::Member, Scope::Admin)?;
        }
        if self.facts.root_allowed { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Allowed for members of the room, while `project_roots` lists the folder: it may have been removed
    /// since.
    fn workspace(&self) -> Result<(), Refusal> {
        self.role_in_room(RoomRole::Member, Scope::Read)?;
        let about = self.facts.room.as_ref().and_then(|room| room.project_root.as_ref());
        match about {
            None => Err(Refusal::NotFound(EntityKind::ProjectRoot)),
            Some(_) if self.facts.root_allowed => Ok(()),
            Some(_) => Err(Refusal::Forbidden),
        }
    }

    /// Only for members of a room with this project root, while `project_roots` lists it. Any other folder
    /// yields the same refusal, whether it exists or not.
    fn rooms_at(&self, in_one: bool) -> Result<(), Refusal> {
        self.signed_in(Scope::Read)?;
        if in_one {
            self.role_in_room(RoomRole::Member, Scope::Read)?;
        }
        let about = self.facts.root_allowed && !self.facts.memberships.is_empty();
        if about { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// Allowed for every user in the room, and for the operator; not for API keys.
    fn freeze(&self) -> Result<(), Refusal> {
        if self.is_operator() {
            return self.facts.room.as_ref().map(|_| ()).ok_or(Refusal::NotFound(EntityKind::Room));
        }
        self.person()?;
        self.role_in_room(RoomRole::Member, Scope::Write).map(|_| ())
    }

    /// Allowed for the user who froze the room, for room admins, and for the operator.
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
            // Only the agent's owner, and users the owner shares it with, may add an agent to a room.
            MemberId::Agent(agent) => self.own_or_shared(agent),
        }
    }

    /// Roles are changed by the room's owner, other member fields by room admins.
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

    /// Requires a message in a room that the caller is a member of and has not cleared. All other messages
    /// are `NotFound`.
    fn seen_message(&self, own: Option<&Member>, scope: Scope) -> Result<RoomRole, Refusal> {
        // Checks the sign-in first, so that anonymous callers get the same refusal whether the message exists
        // or not.
        self.signed_in(scope)?;
        match (&self.facts.message, own) {
            (Some(message), Some(own)) if message.seq > own.room_preferences.cleared_through => Ok(own.role),
            _ => Err(Refusal::NotFound(EntityKind::Message)),
        }
    }

    /// An attachment is visible to users who can currently see its message, an unattached upload only to its
    /// owner.
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

    /// A pattern that names a room requires membership. Patterns with wildcards are checked for each message
    /// instead.
    fn subscribe(&self, mailbox: &Mailbox, pattern: &Pattern) -> Result<(), Refusal> {
        self.own_agent(&mailbox.agent)?;
        match room_named_by(pattern) {
            Some(room) if self.facts.target.is_none() => Err(Refusal::NotAMember { room }),
            _ => Ok(()),
        }
    }

    /// Allowed for site admins and keys with the dead-letter scope: an undelivered message may have been
    /// meant for any user.
    fn dead_letters(&self) -> Result<(), Refusal> {
        self.admin_or_key_for(Scope::DeadLetters)
    }

    /// Allowed for site admins, and for keys with exactly this scope.
    fn admin_or_key_for(&self, scope: Scope) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        let may = standing.has(scope) || standing.is_site_admin();
        if may { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn own_agent(&self, agent: &AgentId) -> Result<(), Refusal> {
        self.signed_in(Scope::Agents)?;
        self.own_agent_of(agent)
    }

    /// Requires an agent that the caller owns, that is shared with the caller, or that is in a common room.
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

    /// Requires an agent that the caller owns. Another user's agent and a missing one yield the same refusal.
    fn own_agent_of(&self, agent: &AgentId) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        match &self.facts.agent {
            Some(found) if found.id == *agent && found.owner == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(EntityKind::Agent)),
        }
    }

    /// Allowed for members of the room. A message that is posted as an agent requires the scope for agents too.
    fn relay(&self) -> Result<(), Refusal> {
        self.role_in_room(RoomRole::Member, Scope::Write)?;
        match &self.facts.agent {
            Some(agent) => self.own_agent(&agent.id),
            None => Ok(()),
        }
    }

    /// `from` must be an agent that the caller owns, or a source name if the caller is an admin or holds the
    /// `sources` scope.
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
            // A username is never a valid source name, so that a source cannot impersonate a user.
            None if self.facts.user.is_some() => Err(Refusal::NotFound(EntityKind::Agent)),
            None => {
                match to_room {
                    _ if !standing.has(Scope::Sources) => Err(Refusal::NotFound(EntityKind::Agent)),
                    // A source cannot be a member of a room.
                    Some(room) => Err(Refusal::NotAMember { room: room.id.clone() }),
                    None => Ok(()),
                }
            }
        }
    }
}
