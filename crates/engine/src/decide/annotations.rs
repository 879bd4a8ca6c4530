//! What people hang on messages: reactions, pins, bookmarks.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::{
    Bookmark, Command, EntityKind, Event, Message, Pin, Reaction, Reactor, Receipt, Refusal, RoomId,
};
use std::sync::Arc;

pub fn decide(command: &Command, draft: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::React { emoji, .. } => react(emoji, draft),
        Command::Pin { .. } => pin(draft),
        Command::Unpin { .. } => unpin(draft),
        Command::Bookmark { .. } => bookmark(draft),
        Command::RemoveBookmark { .. } => remove_bookmark(draft),
        _ => unreachable!("the dispatcher sends only marks here"),
    }
}

fn the_message(draft: &EffectsBuilder) -> Result<(Arc<Message>, RoomId), Refusal> {
    let message = draft.facts.message.clone().ok_or(Refusal::NotFound(EntityKind::Message))?;
    let room = message.destination.room().cloned().ok_or(Refusal::NotFound(EntityKind::Message))?;
    Ok((message, room))
}

fn react(emoji: &str, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = the_message(&draft)?;
    let user = draft.actor()?;
    let mut reactions = message.reactions.clone();
    let own = Reactor { user: user.id.clone(), username: user.username.clone() };
    match reactions.iter().position(|reaction| *reaction.emoji == *emoji) {
        Some(index) => {
            let people = &mut reactions[index].people;
            match people.iter().position(|person| person.user == user.id) {
                Some(index) => drop(people.remove(index)),
                None => people.push(own),
            }
        }
        None if reactions.len() >= draft.mint.limits.reactions => {
            return Err(Refusal::invalid("emoji", "has no place: too many different reactions"));
        }
        None => reactions.push(Reaction { emoji: emoji.into(), people: vec![own] }),
    }
    reactions.retain(|reaction| !reaction.people.is_empty());
    let (id, told): (_, Arc<[Reaction]>) = (message.id.clone(), reactions.clone().into());
    draft.change(Change::PutReactions { message: id.clone(), reactions: told.clone() });
    draft.tell(Event::ReactionsChanged { room, message: id, reactions: told });
    draft.done(Receipt::Message(Arc::new(Message { reactions, ..Message::clone(&message) })))
}

fn pin(mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = the_message(&draft)?;
    if let Some(pin) = draft.facts.pin.clone() {
        return draft.done(Receipt::Pinned { pin, message });
    }
    if draft.facts.pins >= draft.mint.limits.pins {
        return Err(Refusal::invalid("messageId", "cannot be pinned: the room has too many pins"));
    }
    let by = draft.actor()?.id.clone();
    let pin = Pin { room, message: message.id.clone(), by, seq: draft.next_seq(), at: draft.facts.now };
    draft.change(Change::PutPin(pin.clone()));
    draft.tell(Event::MessagePinned(pin.clone()));
    draft.done(Receipt::Pinned { pin, message })
}

fn unpin(mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = the_message(&draft)?;
    draft.change(Change::RemovePin(message.id.clone()));
    draft.tell(Event::MessageUnpinned { room, message: message.id.clone() });
    draft.done(Receipt::Done)
}

fn bookmark(mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = the_message(&draft)?;
    if let Some(bookmark) = draft.facts.bookmark.clone() {
        return draft.done(Receipt::Bookmarked { bookmark, message, repeated: true });
    }
    if draft.facts.bookmarks >= draft.mint.limits.bookmarks {
        return Err(Refusal::invalid("messageId", "cannot be bookmarked: you have too many bookmarks"));
    }
    let (user, id) = (draft.actor()?.id.clone(), message.id.clone());
    let (seq, at) = (draft.next_seq(), draft.facts.now);
    let bookmark = Bookmark { user: user.clone(), message: id.clone(), seq, at };
    draft.change(Change::PutBookmark(bookmark.clone()));
    draft.tell(Event::BookmarkChanged { room, user, message: id, kept: true });
    draft.done(Receipt::Bookmarked { bookmark, message, repeated: false })
}

fn remove_bookmark(mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let user = draft.actor()?.id.clone();
    if draft.facts.bookmark.is_none() {
        return Err(Refusal::NotFound(EntityKind::Bookmark));
    }
    let (message, room) = the_message(&draft)?;
    draft.change(Change::RemoveBookmark(user.clone(), message.id.clone()));
    draft.tell(Event::BookmarkChanged { room, user, message: message.id.clone(), kept: false });
    draft.done(Receipt::Done)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{decide_with, facts, mail, user};
    use super::*;
    use crate::facts::AuthContext;
    use parlor_model::{DeliveryState, Destination};

    /// After these people put these emoji under a message, one after the other, or took them away.
    fn reactions(steps: &[(&str, &str)]) -> Result<Vec<(String, Vec<String>)>, Refusal> {
        let (message, _) = mail("m", "coder", DeliveryState::Pending, 0);
        let place = Destination::Room(RoomId::stored("lobby"));
        let mut message = Arc::new(Message { destination: place, ..Message::clone(&message) });
        for (name, emoji) in steps {
            let mut facts = facts();
            facts.standing = Some(Arc::new(AuthContext { user: user(name), scopes: None }));
            facts.message = Some(message.clone());
            let command = Command::React { message: message.id.clone(), emoji: (*emoji).into() };
            let Receipt::Message(changed) = decide_with(&command, &facts)?.receipt else {
                panic!("no message")
            };
            message = changed;
        }
        let people = |one: &Reaction| one.people.iter().map(|person| person.user.to_string()).collect();
        Ok(message.reactions.iter().map(|one| (one.emoji.to_string(), people(one))).collect())
    }

    #[test]
    fn an_emoji_keeps_its_place_while_anybody_is_left_under_it() {
        let steps = [("ann", "a"), ("bob", "b"), ("bob", "a"), ("ann", "a")];
        let expected = [("a".to_owned(), vec!["bob".to_owned()]), ("b".to_owned(), vec!["bob".to_owned()])];
        assert_eq!(reactions(&steps).unwrap(), expected);
        assert_eq!(reactions(&[("ann", "a"), ("ann", "a")]).unwrap(), []);
    }

    #[test]
    fn another_emoji_is_refused_when_there_are_too_many_and_a_known_one_is_not() {
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let mut steps: Vec<(&str, &str)> = names.iter().map(|name| ("ann", &**name)).collect();
        steps.push(("bob", "7"));
        assert_eq!(reactions(&steps).unwrap().len(), 20);
        steps.push(("bob", "20"));
        assert!(matches!(reactions(&steps), Err(Refusal::Invalid(_))));
    }
}
