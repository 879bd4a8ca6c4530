//! Applies each `Change` of a decision to the in-memory tables.

use super::table::Table;
use super::tables::Tables;
use parlor_engine::decide::Change;
use parlor_model::audit::{AuditRecord, NewAuditEntry};
use parlor_model::{
    AgentId, Approval, ApprovalRule, BlobDigest, Delivery, DeliveryState, Mailbox, Member, MemberId,
    MessageId, MissionScope, RefreshToken, RoomId, RouterId, Run, SecretHash, SignIn, SignInId, Upload,
    UploadPurpose, UserId,
};
use std::sync::Arc;

impl Tables {
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::OfferSetup(offer) => self.setup = *offer,
            Change::PutUser(user) => self.users.put(user.id.clone(), user.as_ref().clone()),
            Change::RemoveUser(user) => self.remove_user(user),
            Change::PutSignIn(sign_in, token) => self.put_sign_in(sign_in, *token),
            Change::EndSignIn(sign_in) => self.end_sign_in(sign_in),
            Change::EndSignInsOf(user) => self.end_sign_ins_of(user),
            Change::PutKey(key, secret) => {
                self.keys.put(key.id.clone(), key.as_ref().clone());
                self.key_secrets.insert(*secret, key.id.clone());
            }
            Change::RemoveKey(key) => {
                self.keys.remove(key);
                self.key_secrets.retain(|_, other| other != key);
            }
            Change::PutInvitation(invitation, secret) => {
                self.invitations.put(invitation.id.clone(), (invitation.as_ref().clone(), *secret));
            }
            Change::UseInvitation(id) => {
                if let Some((invitation, _)) = self.invitations.get_mut(id) {
                    invitation.uses_left -= 1;
                }
            }
            Change::PutPairing(pairing, secret) => {
                // Pairing secrets are unique: a later pairing with the same secret replaces the other user's
                // pairing, like `INSERT OR REPLACE` in the SQLite store.
                self.pairings.retain(|user, (_, own)| *user == pairing.user || own != secret);
                self.pairings.insert(pairing.user.clone(), (pairing.clone(), *secret));
            }
            Change::RemovePairing(user) => drop(self.pairings.remove(user)),
            Change::RemoveInvitation(id) => self.invitations.remove(id),
            Change::PutRouter(router) => {
                self.routers.insert(router.id.clone(), router.as_ref().clone());
            }
            Change::PutService(service) => {
                self.services.insert(service.agent.clone(), service.as_ref().clone());
            }
            Change::RemoveRouter(id) => self.remove_router(id),
            Change::AppendAudit(note) => {
                self.last_audit_id += 1;
                let record = AuditRecord {
                    id: self.last_audit_id,
                    note: NewAuditEntry::clone(note),
                    count: 1,
                    last_at: note.at,
                };
                self.audit.insert(self.last_audit_id, record);
            }
            Change::RepeatAudit { id, at, address } => {
                if let Some(record) = self.audit.get_mut(id) {
                    (record.count, record.last_at, record.note.address) = (record.count + 1, *at, *address);
                }
            }
            Change::PutSettings(settings) => self.settings = settings.as_ref().clone(),
            Change::PutSecondFactor(factor) => {
                self.second_factors.insert(factor.user.clone(), factor.as_ref().clone());
            }
            Change::PutBackupCodes(user, codes) => {
                self.backup_codes.retain(|(owner, _)| owner != user);
                self.backup_codes.extend(codes.iter().map(|code| (user.clone(), *code)));
            }
            Change::SpendBackupCode(user, code) => {
                self.backup_codes.remove(&(user.clone(), *code));
            }
            Change::RemoveSecondFactor(user) => self.remove_second_factor(user),
            Change::PutRoom(room) => self.rooms.put(room.id.clone(), room.as_ref().clone()),
            Change::RemoveRoom(room) => self.remove_room(room),
            Change::PutMember(member) => {
                let nameless = Member { name: "".into(), handle: "".into(), ..member.as_ref().clone() };
                self.members.put((member.room.clone(), member.member.clone()), nameless);
            }
            Change::RemoveMember(room, member) => self.members.remove(&(room.clone(), member.clone())),
            Change::PutMessage(message) => self.messages.put(message.id.clone(), message.clone()),
            Change::Revise { message, previous } => {
                self.messages.put(message.id.clone(), message.clone());
                self.revisions.entry(message.id.clone()).or_default().push(previous.clone());
            }
            Change::DeleteMessage(message) => self.erase(message),
            Change::PutReactions { message, reactions } => {
                if let Some(message) = self.messages.get_mut(message) {
                    Arc::make_mut(message).reactions = reactions.to_vec();
                }
            }
            Change::PutPin(pin) => self.pins.put(pin.message.clone(), pin.clone()),
            Change::RemovePin(message) => self.pins.remove(message),
            Change::PutBookmark(new) => {
                self.bookmarks.put((new.user.clone(), new.message.clone()), new.clone());
            }
            Change::RemoveBookmark(user, message) => self.bookmarks.remove(&(user.clone(), message.clone())),
            Change::MarkRead { room, user, through, at } => {
                let key = (room.clone(), MemberId::User(user.clone()));
                if let Some(member) = self.members.get_mut(&key) {
                    member.read_through = member.read_through.max(*through);
                    member.read_at = Some(*at);
                }
            }
            Change::PutUpload(upload) => self.uploads.put(upload.id.clone(), upload.as_ref().clone()),
            Change::Attach { upload, message } => {
                if let Some(upload) = self.uploads.get_mut(upload) {
                    upload.purpose = UploadPurpose::Message(message.clone());
                }
            }
            Change::RemoveUpload(id) => self.remove_uploads(|upload| upload.id == *id),
            Change::ForgetReleased(digests) => self.released.retain(|digest| !digests.contains(digest)),
            Change::PutAgent(agent) => self.agents.put(agent.id.clone(), agent.as_ref().clone()),
            Change::RemoveAgent(agent) => self.remove_agent(agent),
            Change::PutGateway(gateway) => {
                self.gateways.insert(gateway.id.clone(), gateway.as_ref().clone());
            }
            Change::RemoveGateway(gateway) => {
                self.gateways.remove(gateway);
            }
            Change::PutTask(task) => {
                self.tasks.insert(task.id.clone(), task.as_ref().clone());
            }
            Change::RemoveTask(task) => {
                self.tasks.remove(task);
            }
            Change::PutSession(session) => {
                let key = (session.agent.clone(), session.id.clone());
                self.sessions.put(key, session.clone());
            }
            Change::PutSubscription(new) => {
                let key = (new.agent.clone(), new.session.clone(), new.pattern.clone());
                self.subscriptions.put(key, new.clone());
            }
            Change::RemoveSubscription(mailbox, pattern) => {
                let Mailbox { agent, session } = mailbox.clone();
                self.subscriptions.remove(&(agent, session, pattern.clone()));
            }
            Change::PutApproval(approval) => {
                self.approvals.put(approval.id.clone(), approval.as_ref().clone());
            }
            Change::PutPlan(plan) => {
                let key = (plan.room.clone(), plan.agent.clone());
                self.plans.insert(key, plan.as_ref().clone());
            }
            Change::PutApprovalRule(rule) => {
                self.approval_rules.insert(key_of(rule), rule.clone());
            }
            Change::PutMission(mission) => {
                self.missions.insert(mission.id.clone(), mission.as_ref().clone());
            }
            Change::PutIdlePrompt { mission_scope, agent, idle } => {
                let key = (mission_scope.clone(), agent.clone());
                match idle {
                    Some(idle) => drop(self.idle.insert(key, idle.clone())),
                    None => drop(self.idle.remove(&key)),
                }
            }
            Change::RemoveApprovalRule(rule) => {
                self.approval_rules.remove(&key_of(rule));
            }
            Change::PutRun(run) => self.runs.put(run.id.clone(), run.as_ref().clone()),
            Change::PutDelivery { delivery, seq: _ } => {
                self.deliveries.put((delivery.message.clone(), delivery.mailbox.clone()), delivery.clone());
            }
            Change::MarkDelivered { mailbox, messages } => {
                self.each_copy(mailbox, messages, |copy| copy.state = DeliveryState::Delivered);
            }
            Change::Lease { mailbox, messages, until } => {
                self.each_copy(mailbox, messages, |copy| {
                    copy.state = DeliveryState::Leased { until: *until };
                    copy.attempts += 1;
                });
            }
            Change::DeadLetterDelivery { mailbox, message, reason } => {
                let id = std::slice::from_ref(&message.id);
                self.each_copy(mailbox, id, |copy| copy.state = DeliveryState::Dead);
                self.put_dead_letter(&message.id, Some(mailbox.clone()), reason);
            }
            Change::DeadLetter { message, reason } => self.put_dead_letter(&message.id, None, reason),
            Change::ClearDeadLetters => self.dead_letters = Table::default(),
            Change::RememberIdempotencyKey { key, first, at } => {
                self.first_uses.insert(key.clone(), (first.clone(), *at));
            }
        }
    }

    fn each_copy(&mut self, mailbox: &Mailbox, messages: &[MessageId], change: impl Fn(&mut Delivery)) {
        for message in messages {
            if let Some(copy) = self.deliveries.get_mut(&(message.clone(), mailbox.clone())) {
                change(copy);
            }
        }
    }

    fn put_dead_letter(&mut self, message: &MessageId, mailbox: Option<Mailbox>, reason: &str) {
        let key = (message.clone(), mailbox.clone());
        self.dead_letters.put(key, (message.clone(), mailbox, reason.into()));
    }

    pub fn remove_uploads(&mut self, matches: impl Fn(&Upload) -> bool) {
        let removed: Vec<Upload> = self.uploads.rows().filter(|upload| matches(upload)).cloned().collect();
        for upload in &removed {
            self.uploads.remove(&upload.id);
        }
        let digests: Vec<BlobDigest> = removed.iter().map(|upload| upload.digest).collect();
        let needed: Vec<BlobDigest> = self.uploads.rows().map(|upload| upload.digest).collect();
        self.released.extend(digests.into_iter().filter(|digest| !needed.contains(digest)));
    }

    fn put_sign_in(&mut self, sign_in: &Arc<SignIn>, token: SecretHash) {
        self.sign_ins.put(sign_in.id.clone(), sign_in.as_ref().clone());
        let generation = sign_in.generation;
        self.refresh_tokens.insert(token, RefreshToken { sign_in: sign_in.id.clone(), generation });
        let oldest = sign_in.oldest_known();
        self.refresh_tokens.retain(|_, token| token.sign_in != sign_in.id || token.generation >= oldest);
    }

    pub fn end_sign_in(&mut self, sign_in: &SignInId) {
        self.sign_ins.remove(sign_in);
        self.refresh_tokens.retain(|_, token| token.sign_in != *sign_in);
    }

    fn end_sign_ins_of(&mut self, user: &UserId) {
        let theirs: Vec<SignInId> =
            self.sign_ins.rows().filter(|sign_in| sign_in.user == *user).map(|s| s.id.clone()).collect();
        for sign_in in theirs {
            self.end_sign_in(&sign_in);
        }
        // A signed-in device created the pairing, so it ends with the user's sign-ins.
        self.pairings.remove(user);
    }

    fn remove_second_factor(&mut self, user: &UserId) {
        self.second_factors.remove(user);
        self.backup_codes.retain(|(owner, _)| owner != user);
    }

    fn remove_user(&mut self, user: &UserId) {
        self.users.remove(user);
        self.remove_second_factor(user);
        self.end_sign_ins_of(user);
        let keys: Vec<_> =
            self.keys.rows().filter(|key| key.owner == *user).map(|key| key.id.clone()).collect();
        for key in keys {
            self.keys.remove(&key);
            self.key_secrets.retain(|_, other| *other != key);
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

    fn remove_router(&mut self, id: &RouterId) {
        self.routers.remove(id);
        let affected: Vec<RoomId> = self
            .rooms
            .rows()
            .filter(|room| room.router.as_ref() == Some(id))
            .map(|room| room.id.clone())
            .collect();
        for room in affected {
            if let Some(room) = self.rooms.get_mut(&room) {
                room.router = None;
            }
        }
    }

    fn remove_agent(&mut self, agent: &AgentId) {
        self.agents.remove(agent);
        self.services.remove(agent);
        self.sessions.retain(|(owner, _)| owner != agent);
        self.subscriptions.retain(|(owner, _, _)| owner != agent);
        self.deliveries.retain(|(_, mailbox)| mailbox.agent != *agent);
        self.dead_letters
            .retain(|(_, mailbox)| mailbox.as_ref().is_none_or(|mailbox| mailbox.agent != *agent));
        self.members.retain(|(_, member)| member.agent() != Some(agent));
        self.remove_runs(|run| run.agent == *agent);
        self.remove_approvals(|approval| approval.agent == *agent);
        self.approval_rules.retain(|_, rule| rule.agent != *agent);
        self.plans.retain(|(_, of), _| of != agent);
        self.missions.values_mut().for_each(|mission| mission.agents.retain(|entry| entry.agent != *agent));
        self.idle.retain(|(_, of), _| of != agent);
    }

    pub fn remove_approvals(&mut self, matches: impl Fn(&Approval) -> bool) {
        let approvals = self.approvals.rows().filter(|approval| matches(approval));
        for approval in approvals.map(|approval| approval.id.clone()).collect::<Vec<_>>() {
            self.approvals.remove(&approval);
        }
    }

    pub fn remove_runs(&mut self, matches: impl Fn(&Run) -> bool) {
        let runs = self.runs.rows().filter(|run| matches(run));
        for run in runs.map(|run| run.id.clone()).collect::<Vec<_>>() {
            self.runs.remove(&run);
        }
    }

    fn remove_room(&mut self, room: &RoomId) {
        let messages: Vec<MessageId> = self.messages_in(room).map(|message| message.id.clone()).collect();
        for message in messages {
            self.erase(&message);
        }
        self.erased.retain(|_, (destination, _)| destination.room() != Some(room));
        self.members.retain(|(other, _)| other != room);
        self.tasks.retain(|_, task| task.room != *room);
        self.remove_runs(|run| run.room == *room);
        self.remove_approvals(|approval| approval.room == *room);
        self.approval_rules.retain(|_, rule| rule.room != *room);
        self.plans.retain(|(of, _), _| of != room);
        self.missions.retain(|_, mission| mission.room != *room);
        self.idle.retain(|(mission_scope, _), _| *mission_scope != MissionScope::Room(room.clone()));
        self.rooms.remove(room);
    }

    /// Deletes a message and its dependent rows. Its idempotency key stays, so that a late retry is
    /// recognised.
    pub fn erase(&mut self, message: &MessageId) {
        if let Some(before) = self.messages.get(message) {
            self.erased.insert(message.clone(), (before.destination.clone(), before.seq));
        }
        self.messages.remove(message);
        self.revisions.remove(message);
        self.pins.remove(message);
        self.bookmarks.retain(|(_, other)| other != message);
        self.deliveries.retain(|(other, _)| other != message);
        self.dead_letters.retain(|(other, _)| other != message);
        self.remove_uploads(|upload| upload.purpose == UploadPurpose::Message(message.clone()));
    }
}

fn key_of(rule: &ApprovalRule) -> (RoomId, AgentId, Box<str>) {
    (rule.room.clone(), rule.agent.clone(), rule.tool.clone())
}
