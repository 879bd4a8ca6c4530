//! The only file that answers "may they?". Pure; what is not allowed here is refused.

use crate::facts::{Facts, Standing};
use parlor_model::{
    AgentId, Caller, Command, Mailbox, Member, MemberId, Message, Path, Pattern, Principal, Query, Refusal,
    RoomId, RoomRole, Scope, SiteRole, Thing, Use, User, UserId,
};

pub fn authorise(caller: &Caller, command: &Command, facts: &Facts) -> Result<(), Refusal> {
    let ask = Ask { caller, facts };
    match command {
        Command::OfferSetup { .. } | Command::NoteBackup { .. } => ask.operator(),
        // The evidence is in the command itself and is weighed by its plan.
        Command::SetUp { .. }
        | Command::SignIn(_)
        | Command::SignInFailed { .. }
        | Command::Refresh { .. } => Ok(()),

        Command::CreateUser(_) | Command::ChangeUser { .. } | Command::RemoveUser { .. } => ask.site_admin(),
        Command::ChangeSettings(_) => ask.site_admin(),
        Command::CreateInvitation(_) => {
            ask.site_admin()?;
            if facts.settings.invites() { Ok(()) } else { Err(Refusal::Forbidden) }
        }
        Command::RevokeInvitation { .. } => {
            ask.site_admin()?;
            facts.invitation.as_ref().map(|_| ()).ok_or(Refusal::NotFound(Thing::Invitation))
        }
        Command::Register { .. } => ask.invited(),
        Command::ChangeProfile(_) => ask.signed_in(Scope::Write).map(|_| ()),
        Command::ChangePassword { .. }
        | Command::OfferSecondFactor { .. }
        | Command::ConfirmSecondFactor { .. } => ask.person().map(|_| ()),
        Command::DropSecondFactor { user, .. } => ask.drop_second_factor(user),
        Command::EndSignIn { .. } => ask.own_sign_in(),
        Command::CreateKey { owner, scopes, .. } => ask.create_key(owner.as_ref(), scopes),
        Command::RevokeKey { .. } => ask.revoke_key(),

        Command::CreateRoom { members, .. } => {
            ask.signed_in(Scope::Write)?;
            let agents = members.iter().any(|member| matches!(member, MemberId::Agent(_)));
            // Agents are added one by one, where their owner can be looked at.
            if agents { Err(Refusal::Forbidden) } else { Ok(()) }
        }
        Command::ChangeRoom { .. } => ask.role_in_room(RoomRole::Admin, Scope::Write).map(|_| ()),
        Command::DeleteRoom { .. } => ask.role_in_room(RoomRole::Owner, Scope::Write).map(|_| ()),
        Command::AddMember { member, role, .. } => ask.add_member(member, *role),
        Command::ChangeMember { role, .. } => ask.change_member(*role),
        Command::RemoveMember { member, .. } => ask.remove_member(member),

        Command::Post(_) | Command::MarkRead { .. } | Command::Arrange { .. } => {
            ask.role_in_room(RoomRole::Member, Scope::Write).map(|_| ())
        }
        Command::Edit { .. } => ask.edit(),
        Command::Delete { .. } => ask.delete(facts.message.as_deref(), facts.membership.as_deref()),
        Command::DeleteMany { .. } => {
            ask.signed_in(Scope::Write)?;
            facts.batch.iter().try_for_each(|(message, own)| ask.delete(message.as_deref(), own.as_deref()))
        }
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
        Command::TakeReleased { .. } => ask.operator(),

        Command::CreateAgent { subscriptions, .. } => ask.create_agent(subscriptions),
        Command::ChangeAgent { id, .. } | Command::RemoveAgent { id } => ask.own_agent(id),
        Command::Subscribe { mailbox, pattern } => ask.subscribe(mailbox, pattern),
        Command::Unsubscribe { mailbox, .. }
        | Command::Receive { mailbox, .. }
        | Command::Acknowledge { mailbox, .. } => ask.own_agent(&mailbox.agent),
        Command::Route(_) => ask.route(),
        Command::ClearDeadLetters => ask.dead_letters(),
    }
}

pub fn authorise_query(caller: &Caller, query: &Query, facts: &Facts) -> Result<(), Refusal> {
    let ask = Ask { caller, facts };
    match query {
        Query::Me | Query::Rooms | Query::Recent | Query::Bookmarks { .. } | Query::SearchUsers { .. } => {
            ask.signed_in(Scope::Read).map(|_| ())
        }
        Query::Search(search) => match search.room {
            None => ask.signed_in(Scope::Read).map(|_| ()),
            Some(_) => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        },
        Query::Agents => ask.signed_in(Scope::Read).map(|_| ()),
        Query::Users { .. } | Query::Invitations | Query::Audit(_) => ask.site_admin(),
        Query::MayRegister { .. } => ask.invited(),
        Query::Settings => ask.operator().or_else(|_| ask.signed_in(Scope::Read).map(|_| ())),
        Query::SignIns => ask.person().map(|_| ()),
        Query::Keys => ask.operator().or_else(|_| ask.person().map(|_| ())),
        Query::Room { .. }
        | Query::Members { .. }
        | Query::History { .. }
        | Query::Pins { .. }
        | Query::MayFollow { .. } => ask.role_in_room(RoomRole::Member, Scope::Read).map(|_| ()),
        Query::Revisions { .. } | Query::Thread { .. } | Query::ReplyCount { .. } => {
            ask.seen_message(facts.membership.as_deref(), Scope::Read).map(|_| ())
        }
        Query::MayListen { agent } => ask.own_agent(agent),
        Query::Agent { id } => ask.known_agent(id),
        Query::Upload { .. } => ask.read_upload(),
        Query::MayUpload => ask.signed_in(Scope::Write).map(|_| ()),
        Query::Subscriptions { mailbox } | Query::Mail { mailbox, .. } => ask.own_agent(&mailbox.agent),
        Query::DeadLetters { .. } => ask.dead_letters(),
        Query::MayMeasure => ask.admin_or_key_for(Scope::Metrics),
    }
}

/// Whether the agents of `owner` may hear what a source says on a path: those of the account behind the source, of
/// site admins, and of whoever an admin lets hear it.
pub fn may_hear(owner: &User, behind: Option<&UserId>, path: &Path) -> bool {
    let lets_hear = || owner.hears.iter().any(|pattern| pattern.matches(path));
    behind == Some(&owner.id) || owner.role == SiteRole::Admin || lets_hear()
}

/// The room whose messages a pattern asks for by name.
fn room_of(pattern: &Pattern) -> Option<RoomId> {
    Path::stored(pattern.as_str()).below("room").and_then(|room| RoomId::parse(room).ok())
}

struct Ask<'a> {
    caller: &'a Caller,
    facts: &'a Facts,
}

impl<'a> Ask<'a> {
    fn is_operator(&self) -> bool {
        self.caller.principal == Principal::Operator
    }

    fn operator(&self) -> Result<(), Refusal> {
        if self.is_operator() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn signed_in(&self, scope: Scope) -> Result<&'a Standing, Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        if standing.has(scope) { Ok(standing) } else { Err(Refusal::Forbidden) }
    }

    /// What a program must not do for its owner: passwords, devices, further keys.
    fn person(&self) -> Result<&'a Standing, Refusal> {
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

    /// By an invitation that is open still, of somebody who may still invite. A wrong one, a spent one and one
    /// that was taken back are told alike.
    fn invited(&self) -> Result<(), Refusal> {
        let refused = Err(Refusal::NotFound(Thing::Invitation));
        let Some(invitation) = &self.facts.invitation else { return refused };
        let inviter = self.facts.user.as_ref();
        let may_invite =
            invitation.created_by.is_none() || inviter.is_some_and(|inviter| inviter.role == SiteRole::Admin);
        let good = invitation.is_open(self.facts.now) && may_invite && self.facts.settings.invites();
        if good { Ok(()) } else { refused }
    }

    fn own_sign_in(&self) -> Result<(), Refusal> {
        let standing = self.person()?;
        match &self.facts.sign_in {
            Some(sign_in) if sign_in.user == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(Thing::SignIn)),
        }
    }

    fn drop_second_factor(&self, user: &UserId) -> Result<(), Refusal> {
        if self.is_operator() {
            return self.facts.user.as_ref().map(|_| ()).ok_or(Refusal::NotFound(Thing::User));
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
                None => Err(Refusal::NotFound(Thing::User)),
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
            return if own { Ok(()) } else { Err(Refusal::NotFound(Thing::Key)) };
        }
        self.facts.key.as_ref().map(|_| ()).ok_or(Refusal::NotFound(Thing::Key))
    }

    /// A room's own people decide about it; a site admin who is not a member is an outsider to it.
    fn role_in_room(&self, least: RoomRole, scope: Scope) -> Result<RoomRole, Refusal> {
        self.signed_in(scope)?;
        let room = self.facts.room.as_ref().ok_or(Refusal::NotFound(Thing::Room))?;
        match &self.facts.membership {
            None => Err(Refusal::NotAMember { room: room.id.clone() }),
            Some(membership) if membership.role < least => Err(Refusal::Forbidden),
            Some(membership) => Ok(membership.role),
        }
    }

    fn add_member(&self, member: &MemberId, role: RoomRole) -> Result<(), Refusal> {
        let own = self.role_in_room(RoomRole::Admin, Scope::Write)?;
        if role >= own && own != RoomRole::Owner || role == RoomRole::Owner {
            return Err(Refusal::Forbidden);
        }
        match member {
            MemberId::User(_) => Ok(()),
            // Whoever brings an agent into a room must be the one who answers for it.
            MemberId::Agent(agent) => self.own_agent_of(agent),
        }
    }

    /// The owner decides about roles, admins about what is said of them.
    fn change_member(&self, role: Option<RoomRole>) -> Result<(), Refusal> {
        let least = if role.is_some() { RoomRole::Owner } else { RoomRole::Admin };
        let own = self.role_in_room(least, Scope::Write)?;
        let target = self.facts.target.as_ref().ok_or(Refusal::NotFound(Thing::Member))?;
        let Some(role) = role else { return Ok(()) };
        if target.role >= own {
            return Err(Refusal::MustRemain(Thing::Room));
        }
        let agent_owner = role == RoomRole::Owner && target.member.agent().is_some();
        if agent_owner { Err(Refusal::Forbidden) } else { Ok(()) }
    }

    fn remove_member(&self, member: &MemberId) -> Result<(), Refusal> {
        let own = self.role_in_room(RoomRole::Member, Scope::Write)?;
        let standing = self.signed_in(Scope::Write)?;
        let target = self.facts.target.as_ref().ok_or(Refusal::NotFound(Thing::Member))?;
        if target.role == RoomRole::Owner {
            return Err(Refusal::MustRemain(Thing::Room));
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
            (Some(message), Some(own)) if message.seq > own.arrangement.cleared_through => Ok(own.role),
            _ => Err(Refusal::NotFound(Thing::Message)),
        }
    }

    fn edit(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let (Some(message), Some(_)) = (&self.facts.message, &self.facts.membership) else {
            return Err(Refusal::NotFound(Thing::Message));
        };
        let own = message.sender.user() == Some(&standing.user.id);
        // Nobody puts words into the mouth of whom they quote.
        if own && message.forwarded.is_none() { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// For the sender, and for admins of the room.
    fn delete(&self, message: Option<&Message>, membership: Option<&Member>) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let (Some(message), Some(membership)) = (message, membership) else {
            return Err(Refusal::NotFound(Thing::Message));
        };
        let own = message.sender.user() == Some(&standing.user.id);
        if own || membership.role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// For who pinned it, and for admins of the room.
    fn unpin(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Write)?;
        let role = self.seen_message(self.facts.membership.as_deref(), Scope::Write)?;
        let pin = self.facts.pin.as_ref().ok_or(Refusal::NotFound(Thing::Pin))?;
        if pin.by == standing.user.id || role >= RoomRole::Admin { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    /// What is on a message is seen by those who see the message now, what waits for one by its owner alone.
    fn read_upload(&self) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Read)?;
        let upload = self.facts.uploads.first().ok_or(Refusal::NotFound(Thing::Upload))?;
        match &upload.purpose {
            Use::Avatar => Ok(()),
            Use::Waiting if upload.owner == standing.user.id => Ok(()),
            Use::Waiting => Err(Refusal::NotFound(Thing::Upload)),
            Use::Message(_) => {
                let seen = self.seen_message(self.facts.membership.as_deref(), Scope::Read);
                seen.map(|_| ()).map_err(|_| Refusal::NotFound(Thing::Upload))
            }
        }
    }

    /// Names above and below somebody's agent are that person's. A new agent is in no room yet.
    fn create_agent(&self, subscriptions: &[Pattern]) -> Result<(), Refusal> {
        let standing = self.signed_in(Scope::Agents)?;
        if self.facts.relatives.iter().any(|agent| agent.owner != standing.user.id) {
            return Err(Refusal::Forbidden);
        }
        match subscriptions.iter().find_map(room_of) {
            Some(room) => Err(Refusal::NotAMember { room }),
            None => Ok(()),
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

    /// One's own, or one in a common room.
    fn known_agent(&self, agent: &AgentId) -> Result<(), Refusal> {
        self.signed_in(Scope::Agents)?;
        if self.facts.acquainted { Ok(()) } else { self.own_agent_of(agent) }
    }

    /// Somebody else's agent and no agent at all are told alike.
    fn own_agent_of(&self, agent: &AgentId) -> Result<(), Refusal> {
        let standing = self.facts.standing.as_ref().ok_or(Refusal::NotSignedIn)?;
        match &self.facts.agent {
            Some(found) if found.id == *agent && found.owner == standing.user.id => Ok(()),
            _ => Err(Refusal::NotFound(Thing::Agent)),
        }
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
            None if self.facts.user.is_some() => Err(Refusal::NotFound(Thing::Agent)),
            None => {
                match to_room {
                    _ if !standing.has(Scope::Sources) => Err(Refusal::NotFound(Thing::Agent)),
                    // A source is nobody's member.
                    Some(room) => Err(Refusal::NotAMember { room: room.id.clone() }),
                    None => Ok(()),
                }
            }
        }
    }
}
