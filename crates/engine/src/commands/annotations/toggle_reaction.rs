//! Adds or removes the caller's reaction to a message.

use crate::Limits;
use crate::changes::AnnotationChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::characters::is_deceptive;
use parlor_model::command::ToggleReaction;
use parlor_model::{Event, Field, Message, Reaction, Reactor, Refusal, Scope};
use std::sync::Arc;
use unicode_segmentation::UnicodeSegmentation;

impl Command for ToggleReaction {
    type Facts = SeenMessage;
    type Receipt = Arc<Message>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        // Counts grapheme clusters, so that an emoji composed of several code points counts as one character.
        let short = self.emoji.len() <= 64 && (1..=8).contains(&self.emoji.graphemes(true).count());
        field_errors.unless(short, Field::Emoji, "must have 1 to 8 characters");
        let blank = self.emoji.chars().any(|c| is_deceptive(c) || c.is_whitespace());
        field_errors.unless(!blank, Field::Emoji, "must not contain spaces or control characters");
        field_errors.into_result()
    }

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<SeenMessage, PermitError> {
        view.seen_message(caller, &self.message, Scope::Write)
    }

    fn decide(self, seen: SeenMessage, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Message>, Refusal> {
        let SeenMessage { caller, message, room, .. } = seen;
        let user = &caller.user;
        let mut reactions = message.reactions.clone();
        let own = Reactor { user: user.id.clone(), username: user.username.clone() };
        match reactions.iter().position(|reaction| reaction.emoji == self.emoji) {
            Some(index) => {
                let people = &mut reactions[index].people;
                match people.iter().position(|person| person.user == user.id) {
                    Some(index) => drop(people.remove(index)),
                    None => people.push(own),
                }
            }
            None if reactions.len() >= effects.limits.reactions => {
                return Err(Refusal::invalid(
                    Field::Emoji,
                    "cannot be added: the message has too many different reactions",
                ));
            }
            None => reactions.push(Reaction { emoji: self.emoji, people: vec![own] }),
        }
        reactions.retain(|reaction| !reaction.people.is_empty());
        let (id, published): (_, Arc<[Reaction]>) = (message.id.clone(), reactions.clone().into());
        effects.change(AnnotationChange::PutReactions { message: id.clone(), reactions: published.clone() });
        effects.publish(Event::ReactionsChanged { room, message: id, reactions: published });
        Ok(Arc::new(Message { reactions, ..Message::clone(&message) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::{auth, decide, member_of, room_message};
    use parlor_model::{MessageId, RoomId};

    /// Reactions after these users have toggled these emoji on a message, one after the other.
    fn reactions(steps: &[(&str, &str)]) -> Result<Vec<(String, Vec<String>)>, Refusal> {
        let room = RoomId::stored("lobby");
        let mut message = room_message(&room);
        for (name, emoji) in steps {
            let (caller, member) = (auth(name), member_of(&room, name));
            let seen = SeenMessage { caller, message: message.clone(), room: room.clone(), member };
            let toggle = ToggleReaction { message: message.id.clone(), emoji: (*emoji).into() };
            message = decide(toggle, seen)?.0;
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

    #[test]
    fn an_emoji_is_short_in_graphemes_and_in_bytes() {
        let is_valid = |emoji: &str| {
            let toggle = ToggleReaction { message: MessageId::stored("m"), emoji: emoji.into() };
            toggle.validate(&Limits::default()).is_ok()
        };
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}";
        for good in ["\u{1f44d}\u{1f3fd}", family, "\u{2764}\u{fe0f}", "thumbsup", "+1", "ß"] {
            assert!(is_valid(good), "{good:?}");
        }
        let tower = format!("a{}", "\u{301}".repeat(40));
        for bad in ["", " ", "a b", "thumbsup!", "\n", "a\u{202e}b", "\u{2003}", &tower, &"x".repeat(100_000)]
        {
            assert!(!is_valid(bad), "{bad:.20?}");
        }
    }
}
