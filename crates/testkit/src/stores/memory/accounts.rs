//! Accounts: users, first-run setup, invitations and pairing codes, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::AccountChange;
use parlor_engine::ports::ReadAccounts;
use parlor_model::{
    Invitation, InvitationId, Pairing, RoomId, RoomInvitation, SecretHash, SiteRole, Time, UploadPurpose,
    User, UserId,
};

impl ReadAccounts for TablesView {
    fn user(&mut self, id: &UserId) -> Result<Option<User>, Fault> {
        Ok(self.tables.users.get(id).cloned())
    }

    fn user_named(&mut self, username: &str) -> Result<Option<User>, Fault> {
        let mut users = self.tables.users.rows();
        Ok(users.find(|user| user.username.eq_ignore_ascii_case(username)).cloned())
    }

    fn admins(&mut self) -> Result<u64, Fault> {
        Ok(self.tables.users.rows().filter(|user| user.role == SiteRole::Admin).count() as u64)
    }

    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault> {
        Ok(self.tables.setup)
    }

    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault> {
        Ok(self.tables.invitations.get(id).map(|(invitation, _)| invitation.clone()))
    }

    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault> {
        let mut invitations = self.tables.invitations.rows();
        Ok(invitations.find(|(_, own)| own == secret).map(|(invitation, _)| invitation.clone()))
    }

    fn room_invitation(&mut self, id: &InvitationId) -> Result<Option<RoomInvitation>, Fault> {
        Ok(self.tables.room_invitations.get(id).map(|(invitation, _)| invitation.clone()))
    }

    fn room_invitation_with(&mut self, secret: &SecretHash) -> Result<Option<RoomInvitation>, Fault> {
        let mut invitations = self.tables.room_invitations.rows();
        Ok(invitations.find(|(_, own)| own == secret).map(|(invitation, _)| invitation.clone()))
    }

    fn room_invitations(&mut self, room: &RoomId, now: Time) -> Result<Vec<RoomInvitation>, Fault> {
        let all = self.tables.room_invitations.rows().map(|(invitation, _)| invitation);
        let open = all.filter(|invitation| invitation.room == *room && invitation.expires_at > now);
        Ok(sorted(open.cloned(), |invitation| (invitation.created_at, invitation.id.clone())))
    }

    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault> {
        let mut pairings = self.tables.pairings.values();
        Ok(pairings.find(|(_, own)| own == code).map(|(pairing, _)| pairing.clone()))
    }

    fn users(&mut self, limit: usize, offset: usize) -> Result<(Vec<User>, usize), Fault> {
        let users = sorted(self.tables.users.rows(), |user| (user.created_at, user.id.clone()));
        let page = users.iter().skip(offset).take(limit);
        Ok((page.copied().cloned().collect(), users.len()))
    }

    fn search_users(&mut self, text: &str, except: &UserId, limit: usize) -> Result<Vec<User>, Fault> {
        let text = text.to_ascii_lowercase();
        let has = |name: &str| name.to_ascii_lowercase().contains(&text);
        let users = self.tables.users.rows().filter(|user| user.id != *except);
        let found = users.filter(|user| has(&user.username) || has(&user.display_name));
        let mut found = sorted(found.cloned(), |user| user.username.to_ascii_lowercase());
        found.truncate(limit);
        Ok(found)
    }

    fn invitations(&mut self, now: Time) -> Result<Vec<Invitation>, Fault> {
        let all = self.tables.invitations.rows().map(|(invitation, _)| invitation);
        let open = all.filter(|invitation| invitation.expires_at > now);
        Ok(sorted(open.cloned(), |invitation| (invitation.created_at, invitation.id.clone())))
    }
}

impl Tables {
    pub fn apply_accounts(&mut self, change: &AccountChange) {
        match change {
            AccountChange::OfferSetup(offer) => self.setup = *offer,
            AccountChange::PutUser(user) => self.users.put(user.id.clone(), user.as_ref().clone()),
            AccountChange::RemoveUser(user) => self.remove_user(user),
            AccountChange::PutInvitation(invitation, secret) => {
                self.invitations.put(invitation.id.clone(), (invitation.as_ref().clone(), *secret));
            }
            AccountChange::UseInvitation(id) => {
                if let Some((invitation, _)) = self.invitations.get_mut(id) {
                    invitation.uses_left -= 1;
                }
            }
            AccountChange::RemoveInvitation(id) => self.invitations.remove(id),
            AccountChange::PutRoomInvitation(invitation, secret) => {
                self.room_invitations.put(invitation.id.clone(), (invitation.as_ref().clone(), *secret));
            }
            AccountChange::RemoveRoomInvitation(id) => self.room_invitations.remove(id),
            AccountChange::PutPairing(pairing, secret) => {
                // Pairing secrets are unique: a later pairing with the same secret replaces the other user's
                // pairing, like `INSERT OR REPLACE` in the SQLite store.
                self.pairings.retain(|user, (_, own)| *user == pairing.user || own != secret);
                self.pairings.insert(pairing.user.clone(), (pairing.clone(), *secret));
            }
            AccountChange::RemovePairing(user) => drop(self.pairings.remove(user)),
        }
    }

    pub fn remove_user(&mut self, user: &UserId) {
        self.users.remove(user);
        self.remove_second_factor(user);
        self.end_sign_ins_of(user);
        let keys: Vec<_> =
            self.keys.rows().filter(|key| key.owner == *user).map(|key| key.id.clone()).collect();
        for key in keys {
            self.remove_key(&key);
        }
        let agents: Vec<_> =
            self.agents.rows().filter(|agent| agent.owner == *user).map(|agent| agent.id.clone()).collect();
        for agent in agents {
            self.remove_agent(&agent);
        }
        let routers: Vec<_> = self
            .routers
            .values()
            .filter(|router| router.created_by == *user)
            .map(|router| router.id.clone())
            .collect();
        for router in routers {
            self.remove_router(&router);
        }
        self.gateways.retain(|_, gateway| gateway.owner != *user);
        self.members.retain(|(_, member)| member.user() != Some(user));
        self.bookmarks.retain(|(owner, _)| owner != user);
        self.approval_rules.retain(|_, rule| rule.by != *user);
        self.remove_uploads(|upload| {
            upload.owner == *user && !matches!(upload.purpose, UploadPurpose::Message(_))
        });
    }
}
