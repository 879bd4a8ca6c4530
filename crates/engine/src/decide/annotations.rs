//! Decides annotations on messages: reactions, pins and bookmarks.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::{
    Bookmark, Command, EntityKind, Event, Message, Pin, Reaction, Reactor, Receipt, Refusal, RoomId,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::React { emoji, .. } => react(emoji, effects_builder),
        Command::Pin { .. } => pin(effects_builder),
        Command::Unpin { .. } => unpin(effects_builder),
        Command::Bookmark { .. } => bookmark(effects_builder),
        Command::RemoveBookmark { .. } => remove_bookmark(effects_builder),
        _ => unreachable!("the dispatcher sends only annotation commands here"),
    }
}

fn require_message(effects_builder: &EffectsBuilder) -> Result<(Arc<Message>, RoomId), Refusal> {
    let message = effects_builder.facts.message.clone().ok_or(Refusal::NotFound(EntityKind::Message))?;
    let room = message.destination.room().cloned().ok_or(Refusal::NotFound(EntityKind::Message))?;
    Ok((message, room))
}

fn react(emoji: &str, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = require_message(&effects_builder)?;
    let user = effects_builder.actor()?;
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
        None if reactions.len() >= effects_builder.decide_context.limits.reactions => {
            return Err(Refusal::invalid(
                "emoji",
                "cannot be added: the message has too many different reactions",
            ));
        }
        None => reactions.push(Reaction { emoji: emoji.into(), people: vec![own] }),
    }
    reactions.retain(|reaction| !reaction.people.is_empty());
    let (id, published): (_, Arc<[Reaction]>) = (message.id.clone(), reactions.clone().into());
    effects_builder.change(Change::PutReactions { message: id.clone(), reactions: published.clone() });
    effects_builder.publish(Event::ReactionsChanged { room, message: id, reactions: published });
    effects_builder.done(Receipt::Message(Arc::new(Message { reactions, ..Message::clone(&message) })))
}

fn pin(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = require_message(&effects_builder)?;
    if let Some(pin) = effects_builder.facts.pin.clone() {
        return effects_builder.done(Receipt::Pinned { pin, message });
    }
    if effects_builder.facts.pins >= effects_builder.decide_context.limits.pins {
        return Err(Refusal::invalid("messageId", "cannot be pinned: the room has too many pins"));
    }
    let by = effects_builder.actor()?.id.clone();
    let pin = Pin {
        room,
        message: message.id.clone(),
        by,
        seq: effects_builder.next_seq(),
        at: effects_builder.facts.now,
    };
    effects_builder.change(Change::PutPin(pin.clone()));
    effects_builder.publish(Event::MessagePinned(pin.clone()));
    effects_builder.done(Receipt::Pinned { pin, message })
}

fn unpin(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = require_message(&effects_builder)?;
    effects_builder.change(Change::RemovePin(message.id.clone()));
    effects_builder.publish(Event::MessageUnpinned { room, message: message.id.clone() });
    effects_builder.done(Receipt::Done)
}

fn bookmark(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let (message, room) = require_message(&effects_builder)?;
    if let Some(bookmark) = effects_builder.facts.bookmark.clone() {
        return effects_builder.done(Receipt::Bookmarked { bookmark, message, repeated: true });
    }
    if effects_builder.facts.bookmarks >= effects_builder.decide_context.limits.bookmarks {
        return Err(Refusal::invalid("messageId", "cannot be bookmarked: you have too many bookmarks"));
    }
    let (user, id) = (effects_builder.actor()?.id.clone(), message.id.clone());
    let (seq, at) = (effects_builder.next_seq(), effects_builder.facts.now);
    let bookmark = Bookmark { user: user.clone(), message: id.clone(), seq, at };
    effects_builder.change(Change::PutBookmark(bookmark.clone()));
    effects_builder.publish(Event::BookmarkChanged { room, user, message: id, kept: true });
    effects_builder.done(Receipt::Bookmarked { bookmark, message, repeated: false })
}

fn remove_bookmark(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let user = effects_builder.actor()?.id.clone();
    if effects_builder.facts.bookmark.is_none() {
        return Err(Refusal::NotFound(EntityKind::Bookmark));
    }
    let (message, room) = require_message(&effects_builder)?;
    effects_builder.change(Change::RemoveBookmark(user.clone(), message.id.clone()));
    effects_builder.publish(Event::BookmarkChanged { room, user, message: message.id.clone(), kept: false });
    effects_builder.done(Receipt::Done)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{decide_with, facts, mail, user};
    use super::*;
    use crate::facts::AuthContext;
    use parlor_model::{DeliveryState, Destination};

    /// Reactions after these users have toggled these emoji on a message, one after the other.
    fn reactions(steps: &[(&str, &str)]) -> Result<Vec<(String, Vec<String>)>, Refusal> {
        let (message, _) = mail("m", "coder", DeliveryState::Pending, 0);
        let destination = Destination::Room(RoomId::stored("lobby"));
        let mut message = Arc::new(Message { destination, ..Message::clone(&message) });
        for (name, emoji) in steps {
            let mut facts = facts();
            facts.standing = Some(Arc::new(AuthContext { user: user(name).into(), scopes: None }));
            facts.message = Some(message.clone());
            let command = Command::React { message: message.id.clone(), emoji: (*emoji).into() };
            let Receipt::Message(changed) = decide_with(&command, &facts)?.receipt else {
                panic!("no message")
            };
            message = changed;
        }
        let people =
            |reaction: &Reaction| reaction.people.iter().map(|person| person.user.to_string()).collect();
        Ok(message.reactions.iter().map(|reaction| (reaction.emoji.to_string(), people(reaction))).collect())
    }

    #[test]
    fn an_emoji_keeps_its_position_while_it_has_reactors() {
        let steps = [("ann", "a"), ("bob", "b"), ("bob", "a"), ("ann", "a")];
        let expected = [("a".to_owned(), vec!["bob".to_owned()]), ("b".to_owned(), vec!["bob".to_owned()])];
        assert_eq!(reactions(&steps).unwrap(), expected);
        assert_eq!(reactions(&[("ann", "a"), ("ann", "a")]).unwrap(), []);
    }

    #[test]
    fn a_new_emoji_beyond_the_limit_is_refused_and_an_existing_one_is_not() {
        let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let mut steps: Vec<(&str, &str)> = names.iter().map(|name| ("ann", &**name)).collect();
        steps.push(("bob", "7"));
        assert_eq!(reactions(&steps).unwrap().len(), 20);
        steps.push(("bob", "20"));
        assert!(matches!(reactions(&steps), Err(Refusal::Invalid(_))));
    }
}
