//! Checks that the script covers every command and outcome: comparing refusals only would prove little.

use super::run::AnyResult;
use parlor_engine::commands::AnyCommand;
use parlor_engine::commands::AnyReceipt;
use parlor_model::command::{Posted, Prompted, Published, Refreshed, RunStart, SignedIn};
use parlor_model::{Approval, Decision, Delivery, DeliveryState, EntityKind, FieldError, Message, Refusal};
use std::collections::BTreeMap;

/// Counts accepted and refused commands per kind, and notable outcomes.
#[derive(Default)]
pub struct Coverage {
    /// Accepted and refused commands of each kind.
    commands: BTreeMap<&'static str, (u32, u32)>,
    notable: BTreeMap<&'static str, u32>,
}

impl Coverage {
    pub fn count(&mut self, command: &AnyCommand, outcome: &AnyResult) {
        let (accepted, refused) = self.commands.entry(command.name()).or_default();
        *if outcome.is_ok() { accepted } else { refused } += 1;
        for (name, matches) in NOTABLE {
            if matches(outcome) {
                self.note(name);
            }
        }
    }

    pub fn note(&mut self, notable: &'static str) {
        *self.notable.entry(notable).or_default() += 1;
    }

    /// Asserts that every kind of command was accepted and refused, and that every notable outcome occurred.
    pub fn check(&self) {
        println!("accepted and refused: {:?}\nnotable: {:?}", self.commands, self.notable);
        let partly = self.commands.iter().filter(|(_, (accepted, refused))| *accepted == 0 || *refused == 0);
        let never = NOTABLE.iter().map(|(name, _)| *name).filter(|name| !self.notable.contains_key(name));
        let missed: Vec<_> = partly.map(|(name, _)| *name).chain(never).collect();
        assert_eq!(missed, [""; 0], "never accepted, never refused, or never occurred");
        assert_eq!(self.commands.len(), AnyCommand::NAMES.len(), "every kind of command was executed");
    }
}

/// Outcome that is visible in the compared state only, not in a command result.
pub const DEAD_MAIL: &str = "dead mail";

/// Name of an outcome that must occur, and a predicate that recognises it.
type Notable = (&'static str, fn(&AnyResult) -> bool);

const NOTABLE: [Notable; 31] = [
    ("run started", |outcome| matches!(outcome, Ok(AnyReceipt::StartRun(RunStart::Started(_))))),
    ("run with a reply", |outcome| matches!(outcome, Ok(AnyReceipt::FinishRun(run)) if run.reply.is_some())),
    ("approval open", |outcome| approval(outcome, |approval| approval.decision.is_none())),
    ("approval allowed by a rule", |outcome| {
        approval(outcome, |approval| approval.decision == Some(Decision::AllowedByRule))
    }),
    ("questions answered", |outcome| {
        approval(outcome, |approval| matches!(approval.decision, Some(Decision::Answered { .. })))
    }),
    ("approval expired", |outcome| {
        approval(outcome, |approval| approval.decision == Some(Decision::Expired))
    }),
    ("approval denied", |outcome| {
        approval(outcome, |approval| matches!(approval.decision, Some(Decision::Denied { .. })))
    }),
    ("approval decided twice", |outcome| {
        matches!(outcome, Err(Refusal::AlreadyExists(EntityKind::Approval)))
    }),
    ("retry", |outcome| posted(outcome, |posted| posted.repeated && posted.message.is_some())),
    ("retry of a deleted message", |outcome| {
        posted(outcome, |posted| posted.repeated && posted.message.is_none())
    }),
    ("publication", |outcome| published(outcome, |published| !published.repeated)),
    ("retry of a publication", |outcome| published(outcome, |published| published.repeated)),
    ("conflict", |outcome| matches!(outcome, Err(Refusal::Conflict { .. }))),
    ("stolen token", |outcome| matches!(outcome, Ok(AnyReceipt::RefreshSignIn(Refreshed::FamilyRevoked)))),
    (
        "sign-in with a second factor",
        |outcome| matches!(outcome, Ok(AnyReceipt::CreateSignIn(SignedIn { user, .. })) if user.second_factor),
    ),
    ("mail delivered to a mailbox", |outcome| posted(outcome, |posted| !posted.deliveries.is_empty())),
    ("mail taken", |outcome| received(outcome, |copy| copy.state == DeliveryState::Delivered)),
    ("mail leased", |outcome| received(outcome, |copy| copy.attempts == 1)),
    ("mail leased again", |outcome| received(outcome, |copy| copy.attempts > 1)),
    ("mail acknowledged", |outcome| matches!(outcome, Ok(AnyReceipt::AcknowledgeMail(1..)))),
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
    ("id of another user", |outcome| matches!(outcome, Err(Refusal::BelongsToAnother(_)))),
    ("reply to a reply", |outcome| posted_message(outcome, |message| message.thread != message.reply_to)),
    ("reaction of several users", |outcome| {
        let shared = |message: &Message| message.reactions.iter().any(|reaction| reaction.people.len() > 1);
        matches!(outcome, Ok(AnyReceipt::ToggleReaction(message)) if shared(message))
    }),
    (
        "bookmark twice",
        |outcome| matches!(outcome, Ok(AnyReceipt::AddBookmark(bookmarked)) if bookmarked.repeated),
    ),
    ("too many annotations", |outcome| {
        let too_many = |flaw: &FieldError| flaw.rule.contains("too many");
        matches!(outcome, Err(Refusal::Invalid(flaws)) if flaws.iter().any(too_many))
    }),
    ("uploads on a message", |outcome| {
        let has = |message: &Message| !message.attachments.is_empty();
        posted(outcome, |posted| !posted.repeated && posted.message.as_deref().is_some_and(has))
    }),
    (
        "blob released",
        |outcome| matches!(outcome, Ok(AnyReceipt::TakeUnreferencedBlobs(digests)) if !digests.is_empty()),
    ),
    (DEAD_MAIL, |_| false),
];

fn posted(outcome: &AnyResult, is: impl Fn(&Posted) -> bool) -> bool {
    match outcome {
        Ok(
            AnyReceipt::Post(posted)
            | AnyReceipt::Route(posted)
            | AnyReceipt::Relay(posted)
            | AnyReceipt::ForwardMessage(posted)
            | AnyReceipt::PromptAgent(Prompted { posted, .. })
            | AnyReceipt::PromptIdle(posted),
        ) => is(posted),
        Ok(AnyReceipt::DecidePlan(posted)) => posted.as_ref().is_some_and(is),
        _ => false,
    }
}

fn published(outcome: &AnyResult, is: impl Fn(&Published) -> bool) -> bool {
    matches!(outcome, Ok(AnyReceipt::Publish(published)) if is(published))
}

fn posted_message(outcome: &AnyResult, is: impl Fn(&Message) -> bool) -> bool {
    posted(outcome, |posted| posted.message.as_deref().is_some_and(&is))
}

fn approval(outcome: &AnyResult, is: impl Fn(&Approval) -> bool) -> bool {
    match outcome {
        Ok(
            AnyReceipt::AskApproval(found)
            | AnyReceipt::DecideApproval(found)
            | AnyReceipt::AnswerQuestions(found)
            | AnyReceipt::ExpireApproval(found),
        ) => is(found),
        _ => false,
    }
}

fn received(outcome: &AnyResult, is: impl Fn(&Delivery) -> bool) -> bool {
    matches!(outcome, Ok(AnyReceipt::ReceiveMail(mail)) if mail.iter().any(|(_, copy)| is(copy)))
}
