//! What is true of every store after whatever was asked of it.

use super::picture::{Inside, Picture};
use parlor_model::{RoomRole, Sender, Seq};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeSet;

pub fn check(picture: &Picture) -> Result<(), TestCaseError> {
    the_log_has_no_hole(picture)?;
    for inside in &picture.rooms {
        a_room_has_one_owner_while_it_lasts(inside)?;
        history_is_the_same_from_either_end(inside)?;
    }
    no_place_is_taken_twice(picture)?;
    no_key_stands_for_two_messages(picture)?;
    nobody_gets_mail_that_is_gone(picture)
}

fn the_log_has_no_hole(picture: &Picture) -> Result<(), TestCaseError> {
    let seqs: Vec<u64> = picture.log.iter().map(|logged| logged.seq.0).collect();
    let all: Vec<u64> = (picture.head.trimmed.0 + 1..=picture.head.seq.0).collect();
    prop_assert_eq!(seqs, all, "every place from the trimmed beginning to the head");
    Ok(())
}

fn a_room_has_one_owner_while_it_lasts(inside: &Inside) -> Result<(), TestCaseError> {
    prop_assert_eq!(inside.members.len(), inside.count);
    let owners = inside.members.iter().filter(|member| member.role == RoomRole::Owner);
    match &inside.room {
        None => prop_assert!(inside.members.is_empty() && inside.forward.is_empty(), "gone with all in it"),
        Some(room) => {
            let people: Vec<bool> = owners.map(|owner| owner.member.user().is_some()).collect();
            prop_assert_eq!(people, [true], "{} has one owner, a person", room.id);
        }
    }
    Ok(())
}

fn history_is_the_same_from_either_end(inside: &Inside) -> Result<(), TestCaseError> {
    let mut backward = inside.backward.clone();
    backward.reverse();
    prop_assert_eq!(&inside.forward, &backward);
    let ascends = inside.forward.windows(2).all(|pair| pair[0].seq < pair[1].seq);
    prop_assert!(ascends, "every message of a room has its own place, in order");
    Ok(())
}

fn no_place_is_taken_twice(picture: &Picture) -> Result<(), TestCaseError> {
    let messages = picture.messages.iter().filter_map(|said| said.message.as_ref());
    let seqs: Vec<Seq> = messages.map(|message| message.seq).collect();
    prop_assert_eq!(seqs.iter().collect::<BTreeSet<_>>().len(), seqs.len());
    Ok(())
}

/// Among the messages that are there; times of the clock are too short here for a key to be forgotten
/// while its message stays, except over days, and then the key is free again.
fn no_key_stands_for_two_messages(picture: &Picture) -> Result<(), TestCaseError> {
    let remembered: BTreeSet<Seq> =
        picture.first_uses.iter().filter_map(|(_, first)| first.as_ref()).map(|first| first.seq).collect();
    let mut keys = BTreeSet::new();
    for message in picture.messages.iter().filter_map(|said| said.message.as_ref()) {
        if !remembered.contains(&message.seq) {
            continue;
        }
        if let (Sender::User(user), Some(key)) = (&message.sender, &message.client_message_id) {
            prop_assert!(keys.insert((user.as_str(), key)), "{} of {} twice", key, user);
        }
        if let Some(key) = &message.external_id {
            prop_assert!(keys.insert((&*message.source, key)), "{} of {} twice", key, message.source);
        }
    }
    Ok(())
}

fn nobody_gets_mail_that_is_gone(picture: &Picture) -> Result<(), TestCaseError> {
    for (agent, mail) in &picture.agents {
        prop_assert!(agent.is_some() || mail.is_empty(), "no mail for an agent that is gone");
        for (message, _) in mail {
            let there = picture.messages.iter().any(|said| said.message.as_ref() == Some(message));
            prop_assert!(there, "mail is a message that is there: {}", message.id);
        }
    }
    for said in &picture.messages {
        prop_assert!(said.message.is_some() || said.deliveries.is_empty(), "no copies of what is gone");
    }
    Ok(())
}
