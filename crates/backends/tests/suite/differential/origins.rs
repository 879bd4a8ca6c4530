//! Random ids, connections and authors of posted messages.

use super::agents;
use super::asks::message;
use super::dice::Dice;
use super::world::World;
use parlor_model::{MessageId, Origin, Payload, PostAuthor};

/// A connection that published a message.
pub fn origin(dice: &mut Dice) -> Box<Origin> {
    Box::new(Origin {
        connection: dice.one_of(&["c1", "c2"]).into(),
        client: dice.maybe(|dice| dice.one_of(&["ann", "*"]).into()),
        id: dice.one_of(&["c1:0:0", "mine"]).into(),
        fields: dice.maybe(|_| Payload("{\"mode\":\"plan\"}".into())),
    })
}

/// Mostly a free id, sometimes that of a stored or deleted message.
pub fn chosen_id(dice: &mut Dice, world: &mut World) -> Option<MessageId> {
    match dice.roll(4) {
        0 => Some(message(dice, world)),
        1 => Some(MessageId::stored(dice.one_of(&["mine-1", "mine-2", "mine-3"]))),
        _ => None,
    }
}

/// An agent as the sender, mostly one that the caller does not own.
pub fn author(dice: &mut Dice, world: &mut World) -> Box<PostAuthor> {
    Box::new(PostAuthor {
        agent: agents::agent(dice, world),
        claimed_depth: dice.roll(4) as u32,
        claimed_chain: dice
            .maybe(|dice| dice.one_of(&["coder", "writer", "nobody"]).into())
            .into_iter()
            .collect(),
    })
}
