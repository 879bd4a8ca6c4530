//! Point reads of the in-memory store: the `Lookup` port.

use super::TablesView;
use super::table::sorted;
use parlor_engine::Fault;
use parlor_engine::ports::{
    BudgetUsage, FirstRequest, IdempotencyKey, Lookup, OpenApprovalsOf, RECENT_RUNS_SEARCHED,
};
use parlor_model::audit::{Action, AuditRecord};
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalId, ApprovalRule, BlobDigest, Bookmark, ConversationId,
    CurrentPlan, Delivery, DeliveryState, Gateway, GatewayId, HubSettings, IdlePrompt, Invitation,
    InvitationId, KeyId, Mailbox, Member, MemberId, Message, MessageId, Mission, MissionId, MissionScope,
    Pairing, Pin, RefreshToken, Room, RoomId, Router, RouterId, Run, RunId, RunOutcome, RunState,
    SecondFactor, SecretHash, Seq, Service, Session, SignIn, SignInId, SiteRole, Subscription, Task, TaskId,
    Time, Upload, UploadId, UploadPurpose, User, UserId,
};
use std::cmp::Reverse;
use std::sync::Arc;

impl Lookup for TablesView {
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

    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault> {
        Ok(self.tables.sign_ins.get(id).cloned())
    }

    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault> {
        Ok(self.tables.refresh_tokens.get(token).cloned())
    }

    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault> {
        Ok(self.tables.keys.get(id).cloned())
    }

    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault> {
        let id = self.tables.key_secrets.get(secret);
        Ok(id.and_then(|id| self.tables.keys.get(id)).cloned())
    }

    fn setup(&mut self) -> Result<Option<(SecretHash, Time)>, Fault> {
        Ok(self.tables.setup)
    }

    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault> {
        Ok(self.tables.routers.get(id).cloned())
    }

    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault> {
        Ok(self.tables.services.get(agent).cloned())
    }

    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault> {
        let visible =
            self.tables.routers.values().filter(|router| router.shared || router.created_by == *user);
        let mut visible: Vec<Router> = visible.cloned().collect();
        visible.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(visible)
    }

    fn invitation(&mut self, id: &InvitationId) -> Result<Option<Invitation>, Fault> {
        Ok(self.tables.invitations.get(id).map(|(invitation, _)| invitation.clone()))
    }

    fn invitation_with(&mut self, secret: &SecretHash) -> Result<Option<Invitation>, Fault> {
        let mut invitations = self.tables.invitations.rows();
        Ok(invitations.find(|(_, own)| own == secret).map(|(invitation, _)| invitation.clone()))
    }

    fn pairing(&mut self, code: &SecretHash) -> Result<Option<Pairing>, Fault> {
        let mut pairings = self.tables.pairings.values();
        Ok(pairings.find(|(_, own)| own == code).map(|(pairing, _)| pairing.clone()))
    }

    fn last_failed_sign_in(&mut self, user: Option<&UserId>) -> Result<Option<AuditRecord>, Fault> {
        let of = |record: &&AuditRecord| {
            record.note.subject.as_ref().map(|subject| &*subject.id) == user.map(UserId::as_str)
        };
        let failures = self.tables.audit.values().filter(|record| record.note.action == Action::SignInFailed);
        Ok(failures.rev().find(of).cloned())
    }

    fn settings(&mut self) -> Result<HubSettings, Fault> {
        Ok(self.tables.settings.clone())
    }

    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault> {
        Ok(self.tables.second_factors.get(user).cloned())
    }

    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault> {
        Ok(self.tables.backup_codes.contains(&(user.clone(), *code)))
    }

    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault> {
        Ok(self.tables.rooms.get(id).cloned())
    }

    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault> {
        let found = self.tables.members.get(&(room.clone(), member.clone()));
        Ok(found.map(|member| self.tables.named(member)))
    }

    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault> {
        Ok(self.tables.members_of(room).skip(offset).take(limit).collect())
    }

    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault> {
        let theirs = self.tables.members.rows().filter(|row| row.member == *member);
        Ok(sorted(theirs.map(|row| self.tables.named(row)), |row| (row.joined_at, row.room.clone())))
    }

    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault> {
        Ok(self.tables.messages.get(id).cloned())
    }

    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault> {
        Ok(self.tables.messages.get(id).is_some() || self.tables.erased.contains_key(id))
    }

    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault> {
        Ok(self.tables.messages_in(room).next_back().map(|message| message.seq))
    }

    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let since = self.tables.messages_in(room).filter(|message| message.seq >= from);
        Ok(since.take(limit).cloned().collect())
    }

    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault> {
        Ok(self.tables.pins.get(message).cloned())
    }

    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        Ok(self.tables.pins.rows().filter(|pin| pin.room == *room).count())
    }

    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault> {
        Ok(self.tables.bookmarks.get(&(user.clone(), message.clone())).cloned())
    }

    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault> {
        Ok(self.tables.bookmarks.rows().filter(|bookmark| bookmark.user == *user).count())
    }

    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault> {
        Ok(self.tables.agents.get(id).cloned())
    }

    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault> {
        let theirs = self.tables.agents.rows().filter(|agent| agent.owner == *owner);
        Ok(sorted(theirs.cloned(), |agent| agent.id.clone()))
    }

    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault> {
        let below = |agent: &&Agent| agent.id.ancestors().any(|ancestor| ancestor == *id);
        Ok(sorted(self.tables.agents.rows().filter(below).cloned(), |agent| agent.id.clone()))
    }

    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault> {
        Ok(self.tables.tasks.get(id).cloned())
    }

    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        Ok(self.tables.tasks.values().filter(|task| task.room == *room).count())
    }

    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault> {
        Ok(self.tables.gateways.get(id).cloned())
    }

    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault> {
        let is_owned = |gateway: &&Gateway| owner.is_none_or(|owner| gateway.owner == *owner);
        Ok(self.tables.gateways.values().filter(is_owned).cloned().collect())
    }

    fn sessions(&mut self, agent: &AgentId) -> Result<Vec<Session>, Fault> {
        Ok(self.tables.sessions.rows().filter(|session| session.agent == *agent).cloned().collect())
    }

    fn subscriptions_of(&mut self, mailbox: &Mailbox) -> Result<Vec<Subscription>, Fault> {
        let subscriptions = self.tables.subscriptions.rows();
        let own = subscriptions.filter(|subscription| {
            subscription.agent == mailbox.agent && subscription.session == mailbox.session
        });
        Ok(sorted(own.cloned(), |subscription| (subscription.added_at, subscription.pattern.clone())))
    }

    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault> {
        let agents = self.tables.members_of(room).filter_map(|row| row.member.agent().cloned());
        Ok(sorted(agents, AgentId::clone))
    }

    fn share_a_room(&mut self, first: &MemberId, second: &MemberId) -> Result<bool, Fault> {
        let mut rooms = self.tables.rooms.rows();
        Ok(rooms.any(|room| self.tables.in_room(&room.id, first) && self.tables.in_room(&room.id, second)))
    }

    fn deliveries(&mut self, message: &MessageId) -> Result<Vec<Delivery>, Fault> {
        Ok(self.tables.deliveries_of(message).cloned().collect())
    }

    fn pending(
        &mut self,
        mailbox: &Mailbox,
        now: Time,
        limit: usize,
    ) -> Result<Vec<(Arc<Message>, Delivery)>, Fault> {
        let ready = |delivery: &Delivery| match delivery.state {
            DeliveryState::Pending => true,
            DeliveryState::Leased { until } => until <= now,
            DeliveryState::Delivered | DeliveryState::Dead => false,
        };
        Ok(self.tables.mail_of(mailbox).filter(|(_, delivery)| ready(delivery)).take(limit).collect())
    }

    fn delivery(&mut self, mailbox: &Mailbox, message: &MessageId) -> Result<Option<Delivery>, Fault> {
        Ok(self.tables.deliveries.get(&(message.clone(), mailbox.clone())).cloned())
    }

    fn upload(&mut self, id: &UploadId) -> Result<Option<Upload>, Fault> {
        Ok(self.tables.uploads.get(id).cloned())
    }

    fn uploads_waiting(&mut self, owner: &UserId) -> Result<usize, Fault> {
        let own = self.tables.uploads.rows().filter(|upload| upload.owner == *owner);
        Ok(own.filter(|upload| upload.purpose == UploadPurpose::Unattached).count())
    }

    fn avatars(&mut self, owner: &UserId) -> Result<Vec<Upload>, Fault> {
        let own = self.tables.uploads.rows().filter(|upload| upload.owner == *owner);
        let avatars = own.filter(|upload| upload.purpose == UploadPurpose::Avatar).cloned();
        Ok(sorted(avatars, |upload| (upload.created_at, upload.id.clone())))
    }

    fn released(&mut self, limit: usize) -> Result<Vec<BlobDigest>, Fault> {
        Ok(self.tables.released.iter().take(limit).copied().collect())
    }

    fn approval(&mut self, id: &ApprovalId) -> Result<Option<Approval>, Fault> {
        Ok(self.tables.approvals.get(id).cloned())
    }

    fn approvals_called(&mut self, gateway: &GatewayId, request: &str) -> Result<Vec<Approval>, Fault> {
        let approvals = self.tables.approvals.rows().filter(|approval| approval.gateway == *gateway);
        Ok(approvals.filter(|approval| &*approval.request == request).cloned().collect())
    }

    fn open_approvals(&mut self, of: OpenApprovalsOf<'_>) -> Result<Vec<Approval>, Fault> {
        let matches = |approval: &&Approval| match of {
            OpenApprovalsOf::Everybodys => true,
            OpenApprovalsOf::Room(room) => approval.room == *room,
            OpenApprovalsOf::Run(run) => approval.run == *run,
            OpenApprovalsOf::Agent(agent) => approval.agent == *agent,
        };
        let open = self.tables.approvals.rows().filter(|approval| approval.decision.is_none());
        Ok(open.filter(matches).cloned().collect())
    }

    fn open_approval_count(&mut self) -> Result<usize, Fault> {
        Ok(self.open_approvals(OpenApprovalsOf::Everybodys)?.len())
    }

    fn plan(&mut self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault> {
        Ok(self.tables.plans.get(&(room.clone(), agent.clone())).cloned())
    }

    fn mission(&mut self, id: &MissionId) -> Result<Option<Mission>, Fault> {
        Ok(self.tables.missions.get(id).cloned())
    }

    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault> {
        let in_scope =
            self.tables.missions.values().filter(|mission| mission.mission_scope == *mission_scope);
        let mut found: Vec<Mission> = in_scope.cloned().collect();
        found.sort_by_key(|mission| Reverse((mission.created_at, mission.id.clone())));
        found.truncate(limit);
        Ok(found)
    }

    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault> {
        let rooms = self.tables.rooms.rows().filter(|room| room.project_root.as_deref() == Some(root));
        Ok(sorted(rooms.cloned(), |room| room.id.clone()))
    }

    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault> {
        Ok(self.tables.idle.get(&(mission_scope.clone(), agent.clone())).cloned())
    }

    fn approval_rule(
        &mut self,
        room: &RoomId,
        agent: &AgentId,
        tool: &str,
    ) -> Result<Option<ApprovalRule>, Fault> {
        Ok(self.tables.approval_rules.get(&(room.clone(), agent.clone(), tool.into())).cloned())
    }

    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault> {
        Ok(self.tables.runs.get(id).cloned())
    }

    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault> {
        Ok(self.tables.runs.rows().filter(|run| run.trigger.as_ref() == Some(message)).cloned().collect())
    }

    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault> {
        let mut ended: Vec<&Run> =
            self.tables.runs.rows().filter(|run| run.agent == *agent && run.has_ended()).collect();
        ended.sort_by_key(|run| run.ended_at);
        let mut recent = ended.into_iter().rev().take(RECENT_RUNS_SEARCHED);
        Ok(recent.find(|run| run.lineage.conversation == *conversation).cloned())
    }

    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault> {
        let open = self.tables.runs.rows().filter(|run| run.room == *room && !run.has_ended());
        Ok(open.cloned().collect())
    }

    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault> {
        Ok(self.tables.runs.rows().any(|run| run.agent == *agent && !run.has_ended()))
    }

    fn spent(&mut self, room: &RoomId, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault> {
        let mut spent = BudgetUsage::default();
        for run in self.tables.runs.rows().filter(|run| run.room == *room && run.agent == *agent) {
            let refused = matches!(run.state, RunState::Ended(RunOutcome::Refused(_)));
            if !refused && run.queued_at >= since {
                spent.turns += 1;
                spent.tokens += run.usage.input_tokens + run.usage.output_tokens;
            }
        }
        Ok(spent)
    }

    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let runs = self.tables.runs.rows().filter(|run| run.room == *room && run.agent == *agent);
        let runs = runs.filter(|run| run.asked_by.as_ref() == Some(by) && run.queued_at >= since);
        let refused = |run: &&Run| matches!(run.state, RunState::Ended(RunOutcome::Refused(_)));
        Ok(runs.filter(|run| !refused(run)).count() as u64)
    }

    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let ended = |run: &&Run| run.ended_at.is_some_and(|at| at >= since) && run.reply.is_some();
        Ok(self.tables.runs.rows().filter(|run| run.agent == *agent).filter(ended).count() as u64)
    }

    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault> {
        Ok(self.tables.first_uses.get(key).map(|(first, _)| first.clone()))
    }
}
