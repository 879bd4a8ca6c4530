//! Makes sure that the random commands reach everything: a comparison of refusals proves little.

use parlor_engine::hub::Outcome;
use parlor_model::{Command, Receipt, Refusal};
use std::collections::BTreeMap;

/// For each kind of command, how often it was done and how often refused; and what else came about.
#[derive(Default)]
pub struct Coverage {
    commands: BTreeMap<&'static str, (u32, u32)>,
    notable: BTreeMap<&'static str, u32>,
}

impl Coverage {
    pub fn count(&mut self, command: &Command, outcome: &Outcome) {
        let (done, refused) = self.commands.entry(name(command)).or_default();
        *if outcome.is_ok() { done } else { refused } += 1;
        if let Some(notable) = notable(outcome) {
            *self.notable.entry(notable).or_default() += 1;
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (name, (done, refused)) in &other.commands {
            let sums = self.commands.entry(name).or_default();
            *sums = (sums.0 + done, sums.1 + refused);
        }
        for (name, times) in &other.notable {
            *self.notable.entry(name).or_default() += times;
        }
    }

    pub fn check(&self) {
        println!("done and refused: {:?}\nnotable: {:?}", self.commands, self.notable);
        assert_eq!(self.commands.len(), KINDS, "every kind of command was asked for");
        let partly = self.commands.iter().filter(|(_, (done, refused))| *done == 0 || *refused == 0);
        let partly: Vec<_> = partly.map(|(name, _)| name).collect();
        assert!(partly.is_empty(), "never done, or never refused: {partly:?}");
        let missed: Vec<_> = NOTABLE.iter().filter(|name| !self.notable.contains_key(*name)).collect();
        assert!(missed.is_empty(), "never came about: {missed:?}");
    }
}

const NOTABLE: [&str; 6] =
    ["retry", "retry of a deleted message", "conflict", "stolen token", "mail taken", "mail left"];

fn notable(outcome: &Outcome) -> Option<&'static str> {
    Some(match outcome {
        Ok(Receipt::Posted(posted)) if posted.repeated && posted.message.is_none() => NOTABLE[1],
        Ok(Receipt::Posted(posted)) if posted.repeated => NOTABLE[0],
        Err(Refusal::Conflict { .. }) => NOTABLE[2],
        Ok(Receipt::FamilyRevoked) => NOTABLE[3],
        Ok(Receipt::Received { mail }) if !mail.is_empty() => NOTABLE[4],
        Ok(Receipt::Posted(posted)) if !posted.deliveries.is_empty() => NOTABLE[5],
        _ => return None,
    })
}

const KINDS: usize = 27;

/// A new command has no name here until `asks` makes it, too.
fn name(command: &Command) -> &'static str {
    match command {
        Command::OfferSetup { .. } => "OfferSetup",
        Command::SetUp { .. } => "SetUp",
        Command::CreateUser(_) => "CreateUser",
        Command::ChangeUser { .. } => "ChangeUser",
        Command::RemoveUser { .. } => "RemoveUser",
        Command::ChangeProfile { .. } => "ChangeProfile",
        Command::ChangePassword { .. } => "ChangePassword",
        Command::SignIn(_) => "SignIn",
        Command::SignInFailed { .. } => "SignInFailed",
        Command::Refresh { .. } => "Refresh",
        Command::EndSignIn { .. } => "EndSignIn",
        Command::CreateKey { .. } => "CreateKey",
        Command::RevokeKey { .. } => "RevokeKey",
        Command::CreateRoom { .. } => "CreateRoom",
        Command::ChangeRoom { .. } => "ChangeRoom",
        Command::DeleteRoom { .. } => "DeleteRoom",
        Command::AddMember { .. } => "AddMember",
        Command::ChangeMember { .. } => "ChangeMember",
        Command::RemoveMember { .. } => "RemoveMember",
        Command::Post(_) => "Post",
        Command::Edit { .. } => "Edit",
        Command::Delete { .. } => "Delete",
        Command::MarkRead { .. } => "MarkRead",
        Command::MarkAllRead => "MarkAllRead",
        Command::CreateAgent { .. } => "CreateAgent",
        Command::Route(_) => "Route",
        Command::Receive { .. } => "Receive",
    }
}
