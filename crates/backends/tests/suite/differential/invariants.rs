//! Invariants of every store, checked after any sequence of commands.

use super::picture::{Picture, RoomPicture};
use parlor_model::{
    Delivery, DeliveryState, Mailbox, MemberId, RoomRole, RunState, Sender, Seq, SessionId, SessionRef,
    UploadPurpose,
};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeSet;

pub fn check(picture: &Picture) -> Result<(), TestCaseError> {
    the_log_is_gap_free(picture)?;
    for room_picture in &picture.rooms {
        a_room_has_exactly_one_owner(room_picture)?;
        history_is_the_same_from_either_end(room_picture)?;
    }
    a_second_factor_is_required_if_one_is_confirmed(picture)?;
    no_two_messages_share_a_seq(picture)?;
    annotations_refer_to_existing_messages(picture)?;
    a_thread_stays_in_its_room(picture)?;
    no_idempotency_key_belongs_to_two_messages(picture)?;
    an_upload_is_attached_to_one_existing_message(picture)?;
    blobs_of_uploads_are_referenced(picture)?;
    mail_refers_to_existing_messages_and_agents(picture)?;
    every_agent_has_its_main_session(picture)?;
    agents_below_an_agent_have_the_same_owner(picture)?;
    sessions_that_handled_a_message_have_it(picture)?;
    open_approvals_belong_to_running_runs(picture)?;
    mail_is_dead_after_five_leases(picture)
}

fn the_log_is_gap_free(picture: &Picture) -> Result<(), TestCaseError> {
    let seqs: Vec<u64> = picture.log.iter().map(|logged_event| logged_event.seq.0).collect();
    let all: Vec<u64> = (picture.head.trimmed_through.0 + 1..=picture.head.seq.0).collect();
    prop_assert_eq!(seqs, all, "every `Seq` from the trimmed start to the head");
    Ok(())
}

fn a_room_has_exactly_one_owner(room_picture: &RoomPicture) -> Result<(), TestCaseError> {
    prop_assert_eq!(room_picture.members.len(), room_picture.count);
    let owners = room_picture.members.iter().filter(|member| member.role == RoomRole::Owner);
    match &room_picture.room {
        None => prop_assert!(
            room_picture.members.is_empty() && room_picture.forward.is_empty(),
            "a removed room has no members and no messages"
        ),
        Some(room) => {
            let people: Vec<bool> = owners.map(|owner| owner.member.user().is_some()).collect();
            prop_assert_eq!(people, [true], "{} has exactly one owner, a user", room.id);
        }
    }
    Ok(())
}

fn history_is_the_same_from_either_end(room_picture: &RoomPicture) -> Result<(), TestCaseError> {
    let mut backward = room_picture.backward.clone();
    backward.reverse();
    prop_assert_eq!(&room_picture.forward, &backward);
    let ascends = room_picture.forward.windows(2).all(|pair| pair[0].seq < pair[1].seq);
    prop_assert!(ascends, "messages of a room have ascending sequence numbers");
    Ok(())
}

fn annotations_refer_to_existing_messages(picture: &Picture) -> Result<(), TestCaseError> {
    for entry in &picture.messages {
        prop_assert!(entry.message.is_some() || entry.pin.is_none(), "no pin of a deleted message");
        for reaction in entry.message.iter().flat_map(|message| &message.reactions) {
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
    for entry in &picture.messages {
        prop_assert_eq!(entry.answers.len() as u64, entry.answer_count);
        let Some(message) = &entry.message else { continue };
        prop_assert_eq!(message.reply_to.is_some(), message.thread.is_some());
        for answer in &entry.answers {
            prop_assert_eq!(&answer.destination, &message.destination);
            prop_assert!(answer.seq > message.seq, "a reply has a higher `Seq` than its message");
        }
    }
    Ok(())
}

fn a_second_factor_is_required_if_one_is_confirmed(picture: &Picture) -> Result<(), TestCaseError> {
    for person in &picture.people {
        let required = person.found.as_ref().is_some_and(|user| user.second_factor);
        let confirmed = person.second_factor.as_ref().is_some_and(|factor| factor.confirmed);
        prop_assert_eq!(required, confirmed);
        prop_assert!(
            required || !person.backup_codes.contains(&true),
            "backup codes without a second factor"
        );
    }
    Ok(())
}

fn no_two_messages_share_a_seq(picture: &Picture) -> Result<(), TestCaseError> {
    let messages = picture.messages.iter().filter_map(|entry| entry.message.as_ref());
    let seqs: Vec<Seq> = messages.map(|message| message.seq).collect();
    prop_assert_eq!(seqs.iter().collect::<BTreeSet<_>>().len(), seqs.len());
    Ok(())
}

/// Checks messages whose idempotency key is still stored. A key older than its window is deleted while its
/// message stays, and may then be used again.
fn no_idempotency_key_belongs_to_two_messages(picture: &Picture) -> Result<(), TestCaseError> {
    let remembered: BTreeSet<Seq> =
        picture.first_uses.iter().filter_map(|(_, first)| first.as_ref()).map(|first| first.seq).collect();
    let mut keys = BTreeSet::new();
    for message in picture.messages.iter().filter_map(|entry| entry.message.as_ref()) {
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

fn an_upload_is_attached_to_one_existing_message(picture: &Picture) -> Result<(), TestCaseError> {
    let mut attached = BTreeSet::new();
    for message in picture.messages.iter().filter_map(|entry| entry.message.as_ref()) {
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

fn blobs_of_uploads_are_referenced(picture: &Picture) -> Result<(), TestCaseError> {
    for upload in picture.uploads.iter().flatten() {
        prop_assert!(
            picture.contents.1[usize::from(upload.digest.0[0])],
            "the blob of {:?} is referenced",
            upload
        );
    }
    Ok(())
}

fn open_approvals_belong_to_running_runs(picture: &Picture) -> Result<(), TestCaseError> {
    prop_assert_eq!(picture.approvals.open.len(), picture.approvals.count);
    for open in &picture.approvals.open {
        let runs = |run: &parlor_model::Run| run.id == open.run && run.state == RunState::Running;
        prop_assert!(picture.runs.0.iter().any(runs), "open approval without a running run: {:?}", open);
    }
    for approval in picture.approvals.known.iter().flatten() {
        prop_assert_eq!(approval.decision.is_some(), approval.decided_at.is_some());
    }
    Ok(())
}

fn mail_refers_to_existing_messages_and_agents(picture: &Picture) -> Result<(), TestCaseError> {
    for agent_picture in &picture.agents {
        for mailbox in &agent_picture.mailboxes {
            let bare = mailbox.mail.is_empty() && mailbox.subscriptions.is_empty();
            prop_assert!(
                agent_picture.agent.is_some() || bare,
                "a removed agent has no mail and no subscriptions"
            );
            for (message, _) in mailbox.mail.iter().chain(&mailbox.pending) {
                let exists = picture.messages.iter().any(|entry| entry.message.as_ref() == Some(message));
                prop_assert!(exists, "mail refers to an existing message: {}", message.id);
            }
        }
    }
    for entry in &picture.messages {
        prop_assert!(
            entry.message.is_some() || entry.deliveries.is_empty(),
            "a deleted message has no deliveries"
        );
    }
    Ok(())
}

fn every_agent_has_its_main_session(picture: &Picture) -> Result<(), TestCaseError> {
    for agent_picture in &picture.agents {
        let first = agent_picture.sessions.first().map(|session| session.id.clone());
        prop_assert_eq!(first, agent_picture.agent.as_ref().map(|_| SessionId::main()));
    }
    Ok(())
}

fn agents_below_an_agent_have_the_same_owner(picture: &Picture) -> Result<(), TestCaseError> {
    for agent_picture in &picture.agents {
        let Some(agent) = &agent_picture.agent else { continue };
        let others = agent_picture.below.iter().find(|below| below.owner != agent.owner);
        prop_assert_eq!(others, None, "below {}", agent.id);
    }
    Ok(())
}

fn sessions_that_handled_a_message_have_it(picture: &Picture) -> Result<(), TestCaseError> {
    for entry in &picture.messages {
        let taken: Vec<SessionRef> = entry.deliveries.iter().filter_map(session).collect();
        let of_agents = entry.deliveries.iter().filter(|copy| copy.mailbox.session.is_none());
        let named: Vec<SessionRef> = of_agents.flat_map(|copy| copy.handled_by.iter().cloned()).collect();
        // An imported or moved copy of a session need not have a copy of its agent.
        prop_assert!(
            named.iter().all(|session| taken.contains(session)),
            "sessions in `handled_by` have the message: {:?} in {:?}",
            named,
            taken
        );
    }
    Ok(())
}

fn session(copy: &Delivery) -> Option<SessionRef> {
    let Mailbox { agent, session } = copy.mailbox.clone();
    session.map(|session| SessionRef { agent, session })
}

fn mail_is_dead_after_five_leases(picture: &Picture) -> Result<(), TestCaseError> {
    for copy in picture.messages.iter().flat_map(|entry| &entry.deliveries) {
        prop_assert!(copy.attempts <= 5, "leased too often: {:?}", copy);
        prop_assert!(copy.state != DeliveryState::Dead || copy.attempts == 5, "dead too early: {:?}", copy);
    }
    Ok(())
}
