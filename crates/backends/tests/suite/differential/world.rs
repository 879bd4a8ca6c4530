//! Ids and secrets that the test knows from receipts, including those of deleted entities.

use parlor_engine::commands::{AnyCommand, AnyReceipt};
use parlor_model::command::{
    CreateRoom, Posted, Prompted, RefreshSignIn, Refreshed, Registered, RunStart, SignedIn, Subscribe,
};
use parlor_model::{
    AgentId, ApiKey, ApprovalId, Caller, InvitationId, KeyId, Mailbox, MemberId, MessageId, MissionId,
    Pattern, RoomId, RouterId, Run, RunId, SecretHash, SignInId, TaskId, Time, UploadId, User, UserId,
};
use std::collections::BTreeMap;

pub struct World {
    pub now: Time,
    pub callers: Vec<Caller>,
    pub users: Vec<UserId>,
    pub passwords: BTreeMap<UserId, Box<str>>,
    pub sign_ins: Vec<SignInId>,
    pub tokens: Vec<SecretHash>,
    pub keys: Vec<KeyId>,
    pub secrets: Vec<SecretHash>,
    pub invitations: Vec<(InvitationId, SecretHash)>,
    pub room_invitations: Vec<(RoomId, InvitationId, SecretHash)>,
    pub pairings: Vec<SecretHash>,
    pub routers: Vec<RouterId>,
    pub services: Vec<AgentId>,
    pub rooms: Vec<RoomId>,
    pub memberships: Vec<(RoomId, MemberId)>,
    pub messages: Vec<MessageId>,
    /// Messages posted in a room, with the room.
    pub said: Vec<(RoomId, MessageId)>,
    pub uploads: Vec<UploadId>,
    /// Caller and command of each posted message, for retries.
    pub posted: Vec<(Caller, AnyCommand)>,
    pub agents: Vec<AgentId>,
    pub tasks: Vec<TaskId>,
    pub subscribed: Vec<(Mailbox, Pattern)>,
    /// Received mail, leased or delivered.
    pub handed_out: Vec<(Mailbox, MessageId)>,
    pub runs: Vec<RunId>,
    pub approvals: Vec<ApprovalId>,
    /// Each mission with an agent that may be prompted for it.
    pub missions: Vec<(MissionId, AgentId)>,
    pub rules: Vec<(RoomId, AgentId, Box<str>)>,
    secret_count: u64,
}

impl World {
    pub fn new(now: Time) -> Self {
        Self {
            now,
            callers: vec![Caller::OPERATOR, Caller::ANONYMOUS],
            users: Vec::new(),
            passwords: BTreeMap::new(),
            sign_ins: Vec::new(),
            tokens: Vec::new(),
            keys: Vec::new(),
            secrets: Vec::new(),
            invitations: Vec::new(),
            room_invitations: Vec::new(),
            pairings: Vec::new(),
            routers: Vec::new(),
            services: Vec::new(),
            rooms: Vec::new(),
            memberships: Vec::new(),
            messages: Vec::new(),
            said: Vec::new(),
            uploads: Vec::new(),
            posted: Vec::new(),
            agents: Vec::new(),
            tasks: Vec::new(),
            subscribed: Vec::new(),
            handed_out: Vec::new(),
            runs: Vec::new(),
            approvals: Vec::new(),
            missions: Vec::new(),
            rules: Vec::new(),
            secret_count: 0,
        }
    }

    pub fn members(&self) -> Vec<MemberId> {
        let users = self.users.iter().cloned().map(MemberId::User);
        users.chain(self.agents.iter().cloned().map(MemberId::Agent)).collect()
    }

    /// Returns a secret that was not used before.
    pub fn new_secret(&mut self) -> SecretHash {
        self.secret_count += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&self.secret_count.to_le_bytes());
        SecretHash(bytes)
    }

    pub fn learn(&mut self, caller: &Caller, command: &AnyCommand, receipt: &AnyReceipt) {
        match (command, receipt) {
            (AnyCommand::CreateRoom(CreateRoom { members, .. }), AnyReceipt::CreateRoom(room)) => {
                learn(&mut self.rooms, &room.id);
                self.memberships.extend(members.iter().map(|member| (room.id.clone(), member.clone())));
            }
            (
                _,
                AnyReceipt::AddMember(member)
                | AnyReceipt::ChangeMember(member)
                | AnyReceipt::ChangeRoomPreferences(member),
            ) => learn(&mut self.memberships, &(member.room.clone(), member.member.clone())),
            (
                _,
                AnyReceipt::Post(posted)
                | AnyReceipt::Route(posted)
                | AnyReceipt::Relay(posted)
                | AnyReceipt::ForwardMessage(posted)
                | AnyReceipt::PromptAgent(Prompted { posted, .. })
                | AnyReceipt::PromptIdle(posted)
                | AnyReceipt::DecidePlan(Some(posted)),
            ) => self.learn_post(caller, command, posted),
            (_, AnyReceipt::Publish(published)) => {
                for (message, _) in &published.messages {
                    learn(&mut self.messages, message);
                }
                if !published.repeated {
                    self.posted.push((caller.clone(), command.clone()));
                }
            }
            (_, AnyReceipt::SendHeartbeat(Some(posted))) => learn(&mut self.messages, &posted.id),
            (AnyCommand::ImportMail(import), AnyReceipt::ImportMail(_)) => {
                import.messages.iter().for_each(|message| learn(&mut self.messages, &message.id));
            }
            (AnyCommand::CreateSignIn(new), AnyReceipt::CreateSignIn(signed_in)) => {
                self.learn_sign_in(signed_in, new.refresh);
            }
            (
                AnyCommand::RefreshSignIn(RefreshSignIn { next, .. }),
                AnyReceipt::RefreshSignIn(Refreshed::SignedIn(signed_in)),
            ) => self.learn_sign_in(signed_in, *next),
            (AnyCommand::CreateKey(new), AnyReceipt::CreateKey(key)) => self.learn_key(key, new.secret),
            (AnyCommand::CreateSigningKey(new), AnyReceipt::CreateSigningKey(key)) => {
                self.learn_key(key, new.secret);
            }
            (_, AnyReceipt::CreateAgent(created) | AnyReceipt::ChangeAgent(created)) => {
                learn(&mut self.agents, &created.agent.id);
            }
            (
                _,
                AnyReceipt::RegisterAgent(Registered::Agent(agent))
                | AnyReceipt::HostAgent(agent)
                | AnyReceipt::ConfigureAgent(agent),
            ) => {
                learn(&mut self.agents, &agent.id);
            }
            (_, AnyReceipt::ConfirmSecondFactor(user) | AnyReceipt::RemoveSecondFactor(user)) => {
                self.learn_user(user);
            }
            (
                _,
                AnyReceipt::MergeRun(run)
                | AnyReceipt::StartUnpromptedRun(run)
                | AnyReceipt::StartTurn(run)
                | AnyReceipt::FinishRun(run)
                | AnyReceipt::ReportUsage(run)
                | AnyReceipt::StartRun(RunStart::Refused(run)),
            ) => self.learn_run(run),
            (_, AnyReceipt::DecideBatch(batch) | AnyReceipt::TriggerTurn(batch)) => {
                batch.run.iter().for_each(|run| learn(&mut self.runs, run));
            }
            (_, AnyReceipt::StartRun(RunStart::Started(started))) => self.learn_run(&started.run),
            (AnyCommand::CreateInvitation(new), AnyReceipt::CreateInvitation(invitation)) => {
                self.invitations.push((invitation.id.clone(), new.secret));
            }
            (AnyCommand::InviteToRoom(new), AnyReceipt::InviteToRoom(invitation)) => {
                self.room_invitations.push((new.room.clone(), invitation.id.clone(), new.secret));
            }
            (_, AnyReceipt::AcceptRoomInvitation(joined)) => {
                learn(&mut self.memberships, &(joined.room.id.clone(), joined.member.member.clone()));
            }
            (AnyCommand::RedeemPairingCode(new), AnyReceipt::RedeemPairingCode(key)) => {
                self.learn_key(key, new.secret);
            }
            (
                _,
                AnyReceipt::SetUp(user)
                | AnyReceipt::CreateUser(user)
                | AnyReceipt::Register(user)
                | AnyReceipt::ChangeUser(user)
                | AnyReceipt::ChangeProfile(user)
                | AnyReceipt::ChangePassword(user),
            ) => self.learn_user(user),
            (_, AnyReceipt::CreateRouter(router) | AnyReceipt::ChangeRouter(router)) => {
                learn(&mut self.routers, &router.id);
            }
            (_, AnyReceipt::CreateService(new) | AnyReceipt::ChangeService(new)) => {
                learn(&mut self.services, &new.agent.id);
                learn(&mut self.agents, &new.agent.id);
            }
            (_, AnyReceipt::SetMission(mission)) => {
                let members = self.memberships.iter().filter(|(room, _)| *room == mission.room);
                let members = members.filter_map(|(_, member)| member.agent().cloned());
                let named = mission.agents.iter().map(|entry| entry.agent.clone());
                self.missions.extend(members.chain(named).map(|agent| (mission.id.clone(), agent)));
            }
            (_, AnyReceipt::CreateTask(task)) => learn(&mut self.tasks, &task.id),
            (_, AnyReceipt::AskApproval(approval)) => learn(&mut self.approvals, &approval.id),
            (AnyCommand::DecideApproval(decision), AnyReceipt::DecideApproval(approval))
                if decision.allow && decision.always =>
            {
                if let Some(room) = approval.place.room() {
                    let rule = (room.clone(), approval.agent.clone(), approval.tool.clone());
                    learn(&mut self.rules, &rule);
                }
            }
            (_, AnyReceipt::AddUpload(upload)) => learn(&mut self.uploads, &upload.id),
            (AnyCommand::Subscribe(Subscribe { mailbox, pattern }), _) => {
                learn(&mut self.subscribed, &(mailbox.clone(), pattern.clone()));
            }
            (_, AnyReceipt::ReceiveMail(mail)) => {
                for (message, delivery) in mail {
                    learn(&mut self.handed_out, &(delivery.mailbox.clone(), message.id.clone()));
                }
            }
            _ => {}
        }
    }

    fn learn_user(&mut self, user: &User) {
        learn(&mut self.users, &user.id);
        self.passwords.insert(user.id.clone(), user.password_hash.clone());
    }

    fn learn_sign_in(&mut self, signed_in: &SignedIn, token: SecretHash) {
        let SignedIn { user, sign_in } = signed_in;
        learn(&mut self.sign_ins, &sign_in.id);
        learn(&mut self.callers, &Caller::person(user.id.clone(), sign_in.id.clone()));
        self.tokens.push(token);
    }

    fn learn_key(&mut self, key: &ApiKey, secret: SecretHash) {
        learn(&mut self.keys, &key.id);
        learn(&mut self.callers, &Caller::program(key.owner.clone(), key.id.clone()));
        self.secrets.push(secret);
    }

    fn learn_run(&mut self, run: &Run) {
        learn(&mut self.runs, &run.id);
        if let Some(reply) = &run.reply {
            learn(&mut self.messages, reply);
            if let Some(room) = run.room() {
                learn(&mut self.said, &(room.clone(), reply.clone()));
            }
        }
    }

    fn learn_post(&mut self, caller: &Caller, command: &AnyCommand, posted: &Posted) {
        learn(&mut self.messages, &posted.id);
        let room = posted.message.as_ref().and_then(|message| message.destination.room());
        if let (Some(room), AnyCommand::PromptAgent(_)) = (room, command) {
            learn(&mut self.rooms, room);
            let mentioned = posted.message.iter().flat_map(|message| &message.mentions);
            for agent in mentioned.filter(|mention| mention.member.agent().is_some()) {
                learn(&mut self.memberships, &(room.clone(), agent.member.clone()));
            }
        }
        if let Some(room) = room {
            learn(&mut self.said, &(room.clone(), posted.id.clone()));
        }
        for attachment in posted.message.iter().flat_map(|message| &message.attachments) {
            learn(&mut self.uploads, &attachment.id);
        }
        if !posted.repeated {
            self.posted.push((caller.clone(), command.clone()));
        }
    }
}

pub fn learn<T: Clone + PartialEq>(known: &mut Vec<T>, new: &T) {
    if !known.contains(new) {
        known.push(new.clone());
    }
}
