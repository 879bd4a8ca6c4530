//! Picks a caller with permission for a command: purely random callers would produce almost only refusals.

use super::dice::Dice;
use super::world::World;
use parlor_engine::Fault;
use parlor_engine::commands::AnyCommand;
use parlor_engine::ports::Snapshot;
use parlor_model::command::{
    AcknowledgeMail, AddBookmark, AddMember, AnswerQuestions, CancelRun, ChangeAgent, ChangeMember,
    ChangeRoom, ChangeRoomPreferences, ChangeRouter, ChangeSession, ChangeTask, CreateKey, DecideApproval,
    DecidePlan, DeleteMessage, DeleteMessages, DeleteRoom, DisconnectGateway, EditMessage, EndMission,
    EndSignIn, ForwardMessage, FreezeRoom, InviteToRoom, MarkRoomRead, PinMessage, PromptAgent, ReceiveMail,
    RegisterAgent, RemoveAgent, RemoveBookmark, RemoveGateway, RemoveMember, RemoveRouter,
    RemoveSecondFactor, RemoveTask, RevokeRoomInvitation, RewindRoom, SetIdlePrompt, SetMission, StartTurn,
    StopRuns, StopSession, Subscribe, ThawRoom, ToggleReaction, TriggerTurn, TurnCause, UnpinMessage,
    Unsubscribe, WithdrawRuns,
};
use parlor_model::{
    AgentId, Caller, GatewayId, MessageId, Principal, RoomId, RoomRole, RoomSelection, RunPlace, UploadId,
    UserId,
};

/// A caller that, according to the store, may execute the command, with the user's latest sign-in.
pub fn caller(
    command: &AnyCommand,
    dice: &mut Dice,
    store: &mut dyn Snapshot,
    world: &World,
) -> Result<Option<Caller>, Fault> {
    let user = match command {
        AnyCommand::ChangeSettings(_)
        | AnyCommand::CreateInvitation(_)
        | AnyCommand::RevokeInvitation(_)
        | AnyCommand::OfferSetup(_)
        | AnyCommand::CreateUser(_)
        | AnyCommand::ChangeUser(_)
        | AnyCommand::RemoveUser(_) => return Ok(Some(Caller::OPERATOR)),
        AnyCommand::Register(_)
        | AnyCommand::AcceptRoomInvitation(_)
        | AnyCommand::OfferPairing(_)
        | AnyCommand::RedeemPairingCode(_)
        | AnyCommand::SetUp(_)
        | AnyCommand::ChangeProfile(_)
        | AnyCommand::ChangePassword(_) => None,
        AnyCommand::Post(post) => match post.attachments.first() {
            Some(upload) => owner_of_upload(upload, store)?,
            None => member_of(&post.room, dice, store)?,
        },
        AnyCommand::StartRun(_)
        | AnyCommand::MergeRun(_)
        | AnyCommand::StartUnpromptedRun(_)
        | AnyCommand::FinishRun(_)
        | AnyCommand::PostLateReply(_)
        | AnyCommand::ReportUsage(_) => return Ok(Some(Caller::OPERATOR)),
        AnyCommand::DecidePlan(DecidePlan { rooms: RoomSelection { room: Some(room), .. }, .. })
        | AnyCommand::ForwardMessage(ForwardMessage { room, .. })
        | AnyCommand::StopRuns(StopRuns { room, .. })
        | AnyCommand::WithdrawRuns(WithdrawRuns { room, .. })
        | AnyCommand::MarkRoomRead(MarkRoomRead { room }) => member_of(room, dice, store)?,
        AnyCommand::EditMessage(EditMessage { message, .. })
        | AnyCommand::DeleteMessage(DeleteMessage { message })
        | AnyCommand::RewindRoom(RewindRoom { message, .. }) => sender_of(message, store)?,
        AnyCommand::CancelRun(CancelRun { run }) => match store.run(run)? {
            Some(run) => viewer_of(&run.place, dice, store)?,
            None => None,
        },
        AnyCommand::DeleteMessages(DeleteMessages { messages }) => match messages.first() {
            Some(message) => sender_of(message, store)?,
            None => None,
        },
        AnyCommand::PromptAgent(PromptAgent { agent, rooms, .. }) => match &rooms.room {
            Some(room) => member_of(room, dice, store)?,
            None => owner_of_agent(agent, store)?,
        },
        AnyCommand::MarkAllRead(_) => None,
        AnyCommand::ToggleReaction(ToggleReaction { message, .. })
        | AnyCommand::PinMessage(PinMessage { message })
        | AnyCommand::AddBookmark(AddBookmark { message }) => match room_of(message, store)? {
            Some(room) => member_of(&room, dice, store)?,
            None => None,
        },
        AnyCommand::UnpinMessage(UnpinMessage { message }) => match room_of(message, store)? {
            Some(room) => owner_of(&room, store)?,
            None => None,
        },
        AnyCommand::RemoveBookmark(RemoveBookmark { message }) => {
            let mut owners = Vec::new();
            for user in &world.users {
                owners.extend(store.bookmark(user, message)?.map(|bookmark| bookmark.user));
            }
            (!owners.is_empty()).then(|| dice.one_of(&owners))
        }
        AnyCommand::ChangeAgent(ChangeAgent { id, .. }) | AnyCommand::RemoveAgent(RemoveAgent { id }) => {
            owner_of_agent(id, store)?
        }
        AnyCommand::StartTurn(StartTurn { cause: TurnCause::Batch { .. }, .. }) => {
            return Ok(Some(Caller::OPERATOR));
        }
        AnyCommand::ChangeSession(ChangeSession { agent, .. })
        | AnyCommand::StartTurn(StartTurn { agent, .. })
        | AnyCommand::StopSession(StopSession { agent, .. }) => owner_of_agent(agent, store)?,
        AnyCommand::ConnectGateway(new) => owner_of_gateway(&new.id, store)?,
        AnyCommand::DisconnectGateway(_) if dice.once_in(2) => return Ok(Some(Caller::OPERATOR)),
        AnyCommand::DisconnectGateway(DisconnectGateway { gateway })
        | AnyCommand::RemoveGateway(RemoveGateway { gateway }) => owner_of_gateway(gateway, store)?,
        AnyCommand::RegisterAgent(RegisterAgent { registration }) => {
            owner_of_gateway(&registration.gateway, store)?
        }
        AnyCommand::HostAgent(_)
        | AnyCommand::ConfigureAgent(_)
        | AnyCommand::MoveAgent(_)
        | AnyCommand::ImportMail(_)
        | AnyCommand::RevokeKey(_)
        | AnyCommand::CreateSigningKey(_)
        | AnyCommand::RevokeTokens(_)
        | AnyCommand::CreateKey(CreateKey { owner: Some(_), .. })
        | AnyCommand::RemoveSecondFactor(RemoveSecondFactor { verified_password_hash: None, .. }) => {
            return Ok(Some(Caller::OPERATOR));
        }
        AnyCommand::RemoveSecondFactor(RemoveSecondFactor { user, .. }) => Some(user.clone()),
        AnyCommand::EndSignIn(EndSignIn { sign_in }) => store.sign_in(sign_in)?.map(|sign_in| sign_in.user),
        AnyCommand::CreateAgent(_)
        | AnyCommand::CreateKey(CreateKey { owner: None, .. })
        | AnyCommand::CreateSignIn(_)
        | AnyCommand::EndOtherSignIns(_)
        | AnyCommand::RecordFailedSignIn(_)
        | AnyCommand::RefreshSignIn(_)
        | AnyCommand::OfferSecondFactor(_)
        | AnyCommand::ConfirmSecondFactor(_) => None,
        AnyCommand::SetProjectRoot(_) => return Ok(Some(Caller::OPERATOR)),
        AnyCommand::ChangeRoom(ChangeRoom { room, .. })
        | AnyCommand::ThawRoom(ThawRoom { room })
        | AnyCommand::DeleteRoom(DeleteRoom { room })
        | AnyCommand::AddMember(AddMember { room, .. })
        | AnyCommand::ChangeMember(ChangeMember { room, .. })
        | AnyCommand::InviteToRoom(InviteToRoom { room, .. })
        | AnyCommand::RevokeRoomInvitation(RevokeRoomInvitation { room, .. })
        | AnyCommand::RemoveMember(RemoveMember { room, .. }) => owner_of(room, store)?,
        AnyCommand::FreezeRoom(FreezeRoom { room })
        | AnyCommand::ChangeRoomPreferences(ChangeRoomPreferences { room, .. }) => {
            member_of(room, dice, store)?
        }
        AnyCommand::CreateRoom(_) => None,
        AnyCommand::PromptIdle(_) => return Ok(Some(Caller::OPERATOR)),
        AnyCommand::SetMission(SetMission { rooms: RoomSelection { room: Some(room), .. }, .. })
        | AnyCommand::EndMission(EndMission { rooms: RoomSelection { room: Some(room), .. } })
        | AnyCommand::SetIdlePrompt(SetIdlePrompt {
            rooms: RoomSelection { room: Some(room), .. }, ..
        }) => owner_of(room, store)?,
        AnyCommand::SetIdlePrompt(SetIdlePrompt { agent, .. }) => owner_of_agent(agent, store)?,
        AnyCommand::SetMission(_) | AnyCommand::EndMission(_) | AnyCommand::DecidePlan(_) => None,
        // The first user is the site admin.
        AnyCommand::CreateService(_) | AnyCommand::ChangeService(_) | AnyCommand::RemoveService(_) => {
            world.users.first().cloned()
        }
        AnyCommand::CreateRouter(new) => new.shared.then(|| world.users.first().cloned()).flatten(),
        AnyCommand::ChangeRouter(ChangeRouter { router, .. })
        | AnyCommand::RemoveRouter(RemoveRouter { router }) => {
            store.router(router)?.map(|router| router.created_by)
        }
        AnyCommand::CreateTask(new) => match &new.by {
            Some(agent) => owner_of_agent(agent, store)?,
            None => member_of(&new.room, dice, store)?,
        },
        AnyCommand::ChangeTask(ChangeTask { task, .. }) | AnyCommand::RemoveTask(RemoveTask { task }) => {
            match store.task(task)? {
                Some(task) => owner_of(&task.room, store)?,
                None => None,
            }
        }
        AnyCommand::ReportTask(report) => owner_of_agent(&report.agent, store)?,
        AnyCommand::UpdatePlan(_) | AnyCommand::AskApproval(_) | AnyCommand::ExpireApproval(_) => {
            return Ok(Some(Caller::OPERATOR));
        }
        AnyCommand::DecideApproval(DecideApproval { approval, .. })
        | AnyCommand::AnswerQuestions(AnswerQuestions { approval, .. }) => match store.approval(approval)? {
            Some(approval) => viewer_of(&approval.place, dice, store)?,
            None => None,
        },
        AnyCommand::RevokeApprovalRule(revoke) => owner_of(&revoke.room, store)?,
        AnyCommand::RecordBackup(_) | AnyCommand::AppendNoop(_) | AnyCommand::TakeUnreferencedBlobs(_) => {
            return Ok(Some(Caller::OPERATOR));
        }
        AnyCommand::Route(route) => match AgentId::parse(&route.from) {
            Ok(agent) if store.agent(&agent)?.is_some() => owner_of_agent(&agent, store)?,
            // The first user is the site admin, who may send as an external source.
            _ => world.users.first().cloned(),
        },
        // The first user is the site admin, who may publish on any path.
        AnyCommand::Publish(_) => world.users.first().cloned(),
        AnyCommand::Relay(relay) => match AgentId::parse(&relay.author) {
            Ok(agent) if store.agent(&agent)?.is_some() => owner_of_agent(&agent, store)?,
            _ => member_of(&relay.room, dice, store)?,
        },
        AnyCommand::Subscribe(Subscribe { mailbox, .. })
        | AnyCommand::Unsubscribe(Unsubscribe { mailbox, .. })
        | AnyCommand::ReceiveMail(ReceiveMail { mailbox, .. })
        | AnyCommand::AcknowledgeMail(AcknowledgeMail { mailbox, .. }) => {
            owner_of_agent(&mailbox.agent, store)?
        }
        AnyCommand::DecideBatch(_) | AnyCommand::ReleaseBatch(_) | AnyCommand::SendHeartbeat(_) => {
            return Ok(Some(Caller::OPERATOR));
        }
        AnyCommand::TriggerTurn(TriggerTurn { agent, .. }) => owner_of_agent(agent, store)?,
        AnyCommand::ClearDeadLetters(_) | AnyCommand::ResendDeadLetter(_) => world.users.first().cloned(),
        AnyCommand::AddUpload(_) => None,
    };
    Ok(user.and_then(|user| latest_sign_in(&user, world)))
}

/// The user's latest sign-in as a caller.
fn latest_sign_in(user: &UserId, world: &World) -> Option<Caller> {
    let is_person = |caller: &&Caller| matches!(caller.principal, Principal::Person { .. });
    let mut latest = world.callers.iter().rev().filter(is_person);
    latest.find(|caller| caller.user() == Some(user)).cloned()
}

fn owner_of(room: &RoomId, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    let members = store.members(room, usize::MAX, 0)?;
    let owner = members.into_iter().find(|member| member.role == RoomRole::Owner);
    Ok(owner.and_then(|owner| owner.member.user().cloned()))
}

fn member_of(room: &RoomId, dice: &mut Dice, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    let members = store.members(room, usize::MAX, 0)?;
    let people: Vec<UserId> = members.iter().filter_map(|member| member.member.user().cloned()).collect();
    Ok((!people.is_empty()).then(|| dice.one_of(&people)))
}

/// A user who sees the runs in this place.
fn viewer_of(place: &RunPlace, dice: &mut Dice, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    match place {
        RunPlace::Room(room) | RunPlace::Session { room: Some(room), .. } => member_of(room, dice, store),
        RunPlace::Session { room: None, owner, .. } => Ok(Some(owner.clone())),
    }
}

fn room_of(message: &MessageId, store: &mut dyn Snapshot) -> Result<Option<RoomId>, Fault> {
    Ok(store.message(message)?.and_then(|message| message.destination.room().cloned()))
}

fn owner_of_upload(id: &str, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    Ok(store.upload(&UploadId::stored(id))?.map(|upload| upload.owner))
}

fn sender_of(message: &MessageId, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    Ok(store.message(message)?.and_then(|message| message.sender.user().cloned()))
}

fn owner_of_agent(agent: &AgentId, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    Ok(store.agent(agent)?.map(|agent| agent.owner))
}

fn owner_of_gateway(id: &GatewayId, store: &mut dyn Snapshot) -> Result<Option<UserId>, Fault> {
    Ok(store.gateway(id)?.map(|gateway| gateway.owner))
}
