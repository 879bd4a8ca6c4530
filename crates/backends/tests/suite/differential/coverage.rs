//! Makes sure that the scripted commands reach everything: a comparison of refusals proves little.

use parlor_engine::hub::CommandResult as Came;
use parlor_model::command::Posted;
use parlor_model::{
    Approval, Command, Decision, Delivery, DeliveryState, EntityKind, FieldError, Message, Receipt, Refusal,
};
use std::collections::BTreeMap;

/// For each kind of command, how often it was done and how often refused; and what else came about.
#[derive(Default)]
pub struct Coverage {
    commands: BTreeMap<&'static str, (u32, u32)>,
    notable: BTreeMap<&'static str, u32>,
}

impl Coverage {
    pub fn count(&mut self, command: &Command, outcome: &Came) {
        let (done, refused) = self.commands.entry(name(command)).or_default();
        *if outcome.is_ok() { done } else { refused } += 1;
        for (name, is) in NOTABLE {
            if is(outcome) {
                self.note(name);
            }
        }
    }

    pub fn note(&mut self, notable: &'static str) {
        *self.notable.entry(notable).or_default() += 1;
    }

    /// Every kind of command was done and refused, and every notable outcome came about.
    pub fn check(&self) {
        println!("done and refused: {:?}\nnotable: {:?}", self.commands, self.notable);
        let partly = self.commands.iter().filter(|(_, (done, refused))| *done == 0 || *refused == 0);
        let never = NOTABLE.iter().map(|(name, _)| *name).filter(|name| !self.notable.contains_key(name));
        let missed: Vec<_> = partly.map(|(name, _)| *name).chain(never).collect();
        assert_eq!(missed, [""; 0], "never done, never refused, or never came about");
        assert_eq!(self.commands.len(), KINDS, "every kind of command was asked for");
    }
}

/// Only seen when everything is compared.
pub const GIVEN_UP: &str = "mail given up";

/// What must have come about, and how one knows it by an outcome.
type Notable = (&'static str, fn(&Came) -> bool);

const NOTABLE: [Notable; 29] = [
    ("turn begun", |outcome| matches!(outcome, Ok(Receipt::Started(_)))),
    ("turn with a reply", |outcome| matches!(outcome, Ok(Receipt::Run(run)) if run.reply.is_some())),
    ("question open", |outcome| asked(outcome, |asked| asked.decision.is_none())),
    ("question allowed by a rule", |outcome| {
        asked(outcome, |asked| asked.decision == Some(Decision::AllowedByRule))
    }),
    ("questions answered", |outcome| {
        asked(outcome, |asked| matches!(asked.decision, Some(Decision::Answered { .. })))
    }),
    ("question expired", |outcome| asked(outcome, |asked| asked.decision == Some(Decision::Expired))),
    ("question denied", |outcome| {
        asked(outcome, |asked| matches!(asked.decision, Some(Decision::Denied { .. })))
    }),
    ("question answered twice", |outcome| {
        matches!(outcome, Err(Refusal::AlreadyExists(EntityKind::Approval)))
    }),
    ("retry", |outcome| posted(outcome, |posted| posted.repeated && posted.message.is_some())),
    ("retry of a deleted message", |outcome| {
        posted(outcome, |posted| posted.repeated && posted.message.is_none())
    }),
    ("conflict", |outcome| matches!(outcome, Err(Refusal::Conflict { .. }))),
    ("stolen token", |outcome| matches!(outcome, Ok(Receipt::FamilyRevoked))),
    (
        "sign-in with a second factor",
        |outcome| matches!(outcome, Ok(Receipt::SignedIn { user, .. }) if user.second_factor),
    ),
    ("mail left", |outcome| posted(outcome, |posted| !posted.deliveries.is_empty())),
    ("mail taken", |outcome| received(outcome, |copy| copy.state == DeliveryState::Delivered)),
    ("mail lent out", |outcome| received(outcome, |copy| copy.attempts == 1)),
    ("mail lent out again", |outcome| received(outcome, |copy| copy.attempts > 1)),
    ("mail acknowledged", |outcome| matches!(outcome, Ok(Receipt::Acknowledged(1..)))),
    ("mail handled by a session", |outcome| {
        posted(outcome, |posted| posted.deliveries.iter().any(|copy| !copy.handled_by.is_empty()))
    }),
    ("broadcast to several agents", |outcome| {
        let is_broadcast = |message: &Message| message.destination.path().has_wildcard();
        posted(outcome, |posted| {
            let agents = posted.deliveries.iter().filter(|copy| copy.mailbox.session.is_none());
            posted.message.as_deref().is_some_and(is_broadcast) && agents.count() > 1
        })
    }),
    ("automatic subscription kept", |outcome| {
        matches!(outcome, Err(Refusal::LastOneRequired(EntityKind::Subscription)))
    }),
    ("id of another", |outcome| matches!(outcome, Err(Refusal::BelongsToAnother(_)))),
    ("answer to an answer", |outcome| said(outcome, |message| message.thread != message.reply_to)),
    ("reaction of several people", |outcome| {
        let shared = |message: &Message| message.reactions.iter().any(|one| one.people.len() > 1);
        matches!(outcome, Ok(Receipt::Message(message)) if shared(message))
    }),
    ("bookmark twice", |outcome| matches!(outcome, Ok(Receipt::Bookmarked { repeated: true, .. }))),
    ("too many marks", |outcome| {
        let too_many = |flaw: &FieldError| flaw.rule.contains("too many");
        matches!(outcome, Err(Refusal::Invalid(flaws)) if flaws.iter().any(too_many))
    }),
    ("uploads on a message", |outcome| {
        let has = |message: &Message| !message.attachments.is_empty();
        posted(outcome, |posted| !posted.repeated && posted.message.as_deref().is_some_and(has))
    }),
    ("content released", |outcome| matches!(outcome, Ok(Receipt::Released(digests)) if !digests.is_empty())),
    (GIVEN_UP, |_| false),
];

fn posted(outcome: &Came, is: impl Fn(&Posted) -> bool) -> bool {
    matches!(outcome, Ok(Receipt::Posted(posted)) if is(posted))
}

fn said(outcome: &Came, is: impl Fn(&Message) -> bool) -> bool {
    posted(outcome, |posted| posted.message.as_deref().is_some_and(&is))
}

fn asked(outcome: &Came, is: impl Fn(&Approval) -> bool) -> bool {
    matches!(outcome, Ok(Receipt::Approval(asked)) if is(asked))
}

fn received(outcome: &Came, is: impl Fn(&Delivery) -> bool) -> bool {
    matches!(outcome, Ok(Receipt::Received { mail }) if mail.iter().any(|(_, copy)| is(copy)))
}

pub const KINDS: usize = 91;

/// A new command has no name here until `asks` makes it, too.
pub fn name(command: &Command) -> &'static str {
    match command {
        Command::OfferSetup { .. } => "OfferSetup",
        Command::SetUp { .. } => "SetUp",
        Command::CreateUser(_) => "CreateUser",
        Command::ChangeUser { .. } => "ChangeUser",
        Command::RemoveUser { .. } => "RemoveUser",
        Command::ChangeProfile(_) => "ChangeProfile",
        Command::ChangePassword { .. } => "ChangePassword",
        Command::CreateInvitation(_) => "CreateInvitation",
        Command::RevokeInvitation { .. } => "RevokeInvitation",
        Command::Register { .. } => "Register",
        Command::OfferPairing { .. } => "OfferPairing",
        Command::Pair { .. } => "Pair",
        Command::OfferSecondFactor { .. } => "OfferSecondFactor",
        Command::ConfirmSecondFactor { .. } => "ConfirmSecondFactor",
        Command::DropSecondFactor { .. } => "DropSecondFactor",
        Command::ChangeSettings(_) => "ChangeSettings",
        Command::CreateRouter(_) => "CreateRouter",
        Command::ChangeRouter { .. } => "ChangeRouter",
        Command::RemoveRouter { .. } => "RemoveRouter",
        Command::CreateService(_) => "CreateService",
        Command::ChangeService { .. } => "ChangeService",
        Command::RemoveService { .. } => "RemoveService",
        Command::SignIn(_) => "SignIn",
        Command::SignInFailed { .. } => "SignInFailed",
        Command::Refresh { .. } => "Refresh",
        Command::EndSignIn { .. } => "EndSignIn",
        Command::CreateKey { .. } => "CreateKey",
        Command::RevokeKey { .. } => "RevokeKey",
        Command::CreateRoom { .. } => "CreateRoom",
        Command::ChangeRoom { .. } => "ChangeRoom",
        Command::SetProjectRoot { .. } => "SetProjectRoot",
        Command::DeleteRoom { .. } => "DeleteRoom",
        Command::SetMission { .. } => "SetMission",
        Command::EndMission { .. } => "EndMission",
        Command::SetIdlePrompt { .. } => "SetIdle",
        Command::PromptIdle { .. } => "PromptIdle",
        Command::CreateTask(_) => "CreateTask",
        Command::ChangeTask { .. } => "ChangeTask",
        Command::RemoveTask { .. } => "RemoveTask",
        Command::ReportTask { .. } => "ReportTask",
        Command::Freeze { .. } => "Freeze",
        Command::Thaw { .. } => "Thaw",
        Command::AddMember { .. } => "AddMember",
        Command::ChangeMember { .. } => "ChangeMember",
        Command::RemoveMember { .. } => "RemoveMember",
        Command::ChangeRoomPreferences { .. } => "Arrange",
        Command::Post(_) => "Post",
        Command::Chat { .. } => "Chat",
        Command::Edit { .. } => "Edit",
        Command::Delete { .. } => "Delete",
        Command::DeleteMany { .. } => "DeleteMany",
        Command::Rewind { .. } => "Rewind",
        Command::Forward { .. } => "Forward",
        Command::React { .. } => "React",
        Command::Pin { .. } => "Pin",
        Command::Unpin { .. } => "Unpin",
        Command::Bookmark { .. } => "Bookmark",
        Command::RemoveBookmark { .. } => "RemoveBookmark",
        Command::MarkRead { .. } => "MarkRead",
        Command::MarkAllRead => "MarkAllRead",
        Command::Upload(_) => "Upload",
        Command::TakeUnreferencedBlobs { .. } => "TakeReleased",
        Command::NoteBackup { .. } => "NoteBackup",
        Command::AppendNoop => "Pulse",
        Command::CreateAgent { .. } => "CreateAgent",
        Command::Route(_) => "Route",
        Command::ChangeAgent { .. } => "ChangeAgent",
        Command::RemoveAgent { .. } => "RemoveAgent",
        Command::ConnectGateway(_) => "ConnectGateway",
        Command::DisconnectGateway { .. } => "DisconnectGateway",
        Command::RemoveGateway { .. } => "RemoveGateway",
        Command::RegisterAgent(_) => "RegisterAgent",
        Command::HostAgent { .. } => "HostAgent",
        Command::Subscribe { .. } => "Subscribe",
        Command::Unsubscribe { .. } => "Unsubscribe",
        Command::Receive { .. } => "Receive",
        Command::Acknowledge { .. } => "Acknowledge",
        Command::ClearDeadLetters => "ClearDeadLetters",
        Command::StartRun { .. } => "StartRun",
        Command::MergeRun { .. } => "JoinRun",
        Command::StartUnpromptedRun { .. } => "OpenRun",
        Command::FinishRun(_) => "FinishRun",
        Command::PostLateReply { .. } => "SayLate",
        Command::ReportUsage { .. } => "ReportUsage",
        Command::AskApproval(_) => "AskApproval",
        Command::DecideApproval(_) => "DecideApproval",
        Command::UpdatePlan { .. } => "TellPlan",
        Command::DecidePlan { .. } => "JudgePlan",
        Command::AnswerQuestions { .. } => "AnswerQuestions",
        Command::ExpireApproval { .. } => "ExpireApproval",
        Command::RevokeApprovalRule { .. } => "RevokeApprovalRule",
    }
}
