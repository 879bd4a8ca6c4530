//! What is true of every store after whatever was asked of it.

use super::picture::{Inside, Picture};
use parlor_model::{
    Delivery, DeliveryState, Mailbox, MemberId, RoomRole, RunState, Sender, Seq, SessionId, SessionRef,
    UploadPurpose,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeSet;

pub fn check(picture: &Picture) -> Result<(), TestCaseError> {
    the_log_has_no_hole(picture)?;
    for inside in &picture.rooms {
        a_room_has_one_owner_while_it_lasts(inside)?;
        history_is_the_same_from_either_end(inside)?;
    }
    a_second_factor_is_asked_for_where_there_is_one(picture)?;
    no_place_is_taken_twice(picture)?;
    marks_hang_on_what_is_there(picture)?;
    a_thread_stays_in_its_room(picture)?;
    no_key_stands_for_two_messages(picture)?;
    an_upload_is_on_one_message_that_is_there(picture)?;
    what_is_referred_to_is_kept(picture)?;
    nobody_gets_mail_that_is_gone(picture)?;
    every_agent_has_its_main_session(picture)?;
    names_below_an_agent_are_its_owners(picture)?;
    a_session_never_has_mail_without_its_agent(picture)?;
    what_is_open_is_asked_in_a_turn_that_runs(picture)?;
    mail_is_given_up_after_five_leases(picture)
}

fn the_log_has_no_hole(picture: &Picture) -> Result<(), TestCaseError> {
    let seqs: Vec<u64> = picture.log.iter().map(|logged_event| logged_event.seq.0).collect();
    let all: Vec<u64> = (picture.head.trimmed_through.0 + 1..=picture.head.seq.0).collect();
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

fn marks_hang_on_what_is_there(picture: &Picture) -> Result<(), TestCaseError> {
    for said in &picture.messages {
        prop_assert!(said.message.is_some() || said.pin.is_none(), "no pin of what is gone");
        for reaction in said.message.iter().flat_map(|message| &message.reactions) {
            let people: BTreeSet<_> = reaction.people.iter().map(|person| &person.user).collect();
            prop_assert!(!people.is_empty() && people.len() == reaction.people.len(), "{:?}", reaction);
        }
    }
    for (room, (pin, message)) in
        picture.rooms.iter().flat_map(|room| room.pins.iter().map(move |p| (room, p)))
    {
        prop_assert_eq!(room.room.as_ref().map(|room| &room.id), message.destination.room());
        prop_assert_eq!(&pin.message, &message.id);
    }
    for (bookmark, message) in picture.people.iter().flat_map(|person| &person.bookmarks) {
        let own = MemberId::User(bookmark.user.clone());
        let mut members = picture.rooms.iter().flat_map(|room| &room.members);
        let seen =
            members.any(|member| member.member == own && Some(&member.room) == message.destination.room());
        prop_assert!(seen, "a bookmark in a room that its owner is not in: {:?}", bookmark);
    }
    Ok(())
}

fn a_thread_stays_in_its_room(picture: &Picture) -> Result<(), TestCaseError> {
    for said in &picture.messages {
        prop_assert_eq!(said.answers.len() as u64, said.answer_count);
        let Some(message) = &said.message else { continue };
        prop_assert_eq!(message.reply_to.is_some(), message.thread.is_some());
        for answer in &said.answers {
            prop_assert_eq!(&answer.destination, &message.destination);
            prop_assert!(answer.seq > message.seq, "an answer comes after what it answers");
        }
    }
    Ok(())
}

fn a_second_factor_is_asked_for_where_there_is_one(picture: &Picture) -> Result<(), TestCaseError> {
    for person in &picture.people {
        let asked = person.found.as_ref().is_some_and(|user| user.second_factor);
        let confirmed = person.second_factor.as_ref().is_some_and(|factor| factor.confirmed);
        prop_assert_eq!(asked, confirmed);
        prop_assert!(asked || !person.backup_codes.contains(&true), "codes of nobody's second factor");
    }
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

fn an_upload_is_on_one_message_that_is_there(picture: &Picture) -> Result<(), TestCaseError> {
    let mut attached = BTreeSet::new();
    for message in picture.messages.iter().filter_map(|said| said.message.as_ref()) {
        for attachment in &message.attachments {
            prop_assert!(attached.insert(attachment.id.clone()), "{} is on two messages", attachment.id);
            let upload = picture.uploads.iter().flatten().find(|upload| upload.id == attachment.id);
            let purpose = upload.map(|upload| (&upload.purpose, &upload.file));
            prop_assert_eq!(purpose, Some((&UploadPurpose::Message(message.id.clone()), &attachment.file)));
        }
    }
    let bound =
        picture.uploads.iter().flatten().filter(|upload| matches!(upload.purpose, UploadPurpose::Message(_)));
    let bound: BTreeSet<_> = bound.map(|upload| upload.id.clone()).collect();
    prop_assert_eq!(attached, bound, "no upload outlives its message");
    Ok(())
}

fn what_is_referred_to_is_kept(picture: &Picture) -> Result<(), TestCaseError> {
    for upload in picture.uploads.iter().flatten() {
        prop_assert!(picture.contents.1[usize::from(upload.digest.0[0])], "{:?} is needed", upload);
    }
    Ok(())
}

fn what_is_open_is_asked_in_a_turn_that_runs(picture: &Picture) -> Result<(), TestCaseError> {
    prop_assert_eq!(picture.approvals.open.len(), picture.approvals.count);
    for open in &picture.approvals.open {
        let runs = |run: &parlor_model::Run| run.id == open.run && run.state == RunState::Running;
        prop_assert!(picture.runs.0.iter().any(runs), "nobody waits any more: {:?}", open);
    }
    for approval in picture.approvals.known.iter().flatten() {
        prop_assert_eq!(approval.decision.is_some(), approval.decided_at.is_some());
    }
    Ok(())
}

fn nobody_gets_mail_that_is_gone(picture: &Picture) -> Result<(), TestCaseError> {
    for keeping in &picture.agents {
        for inbox in &keeping.mailboxes {
            let bare = inbox.mail.is_empty() && inbox.subscriptions.is_empty();
            prop_assert!(keeping.agent.is_some() || bare, "no mailbox for an agent that is gone");
            for (message, _) in inbox.mail.iter().chain(&inbox.pending) {
                let there = picture.messages.iter().any(|said| said.message.as_ref() == Some(message));
                prop_assert!(there, "mail is a message that is there: {}", message.id);
            }
        }
    }
    for said in &picture.messages {
        prop_assert!(said.message.is_some() || said.deliveries.is_empty(), "no copies of what is gone");
    }
    Ok(())
}

fn every_agent_has_its_main_session(picture: &Picture) -> Result<(), TestCaseError> {
    for keeping in &picture.agents {
        let first = keeping.sessions.first().map(|session| session.id.clone());
        prop_assert_eq!(first, keeping.agent.as_ref().map(|_| SessionId::main()));
    }
    Ok(())
}

fn names_below_an_agent_are_its_owners(picture: &Picture) -> Result<(), TestCaseError> {
    for keeping in &picture.agents {
        let Some(agent) = &keeping.agent else { continue };
        let others = keeping.below.iter().find(|below| below.owner != agent.owner);
        prop_assert_eq!(others, None, "below {}", agent.id);
    }
    Ok(())
}

fn a_session_never_has_mail_without_its_agent(picture: &Picture) -> Result<(), TestCaseError> {
    for said in &picture.messages {
        let taken: Vec<SessionRef> = said.deliveries.iter().filter_map(session).collect();
        let of_agents = said.deliveries.iter().filter(|copy| copy.mailbox.session.is_none());
        let named: Vec<SessionRef> = of_agents.flat_map(|copy| copy.handled_by.iter().cloned()).collect();
        prop_assert_eq!(taken, named, "what sessions took is named by their agents' copies");
    }
    Ok(())
}

fn session(copy: &Delivery) -> Option<SessionRef> {
    let Mailbox { agent, session } = copy.mailbox.clone();
    session.map(|session| SessionRef { agent, session })
}

fn mail_is_given_up_after_five_leases(picture: &Picture) -> Result<(), TestCaseError> {
    for copy in picture.messages.iter().flat_map(|said| &said.deliveries) {
        prop_assert!(copy.attempts <= 5, "handed out too often: {:?}", copy);
        prop_assert!(copy.state != DeliveryState::Dead || copy.attempts == 5, "too early: {:?}", copy);
    }
    Ok(())
}
