//! Ids that clients choose for their messages: a used id is never stored a second time.

use crate::Fault;
use crate::effects::EffectsBuilder;
use crate::ports::Lookup;
use parlor_model::command::Posted;
use parlor_model::{
    Attachment, Delivery, Destination, EntityKind, Message, MessageId, Post, Refusal, Sender,
};
use std::sync::Arc;

/// Existing use of an id that a client chose for a post.
#[derive(Debug, Clone)]
pub enum ChosenId {
    Unused,
    /// The message with this id was deleted.
    Deleted,
    Used(Box<FirstUse>),
}

/// The stored message with the id.
#[derive(Debug, Clone)]
pub struct FirstUse {
    pub message: Arc<Message>,
    /// Text before the first edit.
    pub text: Arc<str>,
    pub deliveries: Vec<Delivery>,
}

impl ChosenId {
    pub fn load(id: Option<&MessageId>, store: &mut (impl Lookup + ?Sized)) -> Result<Self, Fault> {
        let Some(id) = id else { return Ok(Self::Unused) };
        let Some(message) = store.message(id)? else {
            return Ok(if store.was_said(id)? { Self::Deleted } else { Self::Unused });
        };
        let revisions = match message.edited_at {
            Some(_) => store.revisions(id, usize::MAX)?,
            None => Vec::new(),
        };
        let text = revisions.last().map_or_else(|| message.text.clone(), |first| (*first.text).into());
        let deliveries = store.deliveries(id)?;
        Ok(Self::Used(Box::new(FirstUse { message, text, deliveries })))
    }

    /// Returns the first receipt if the post repeats the stored message; `None` if the id is free.
    pub fn first_receipt(
        self,
        post: &Post,
        sender: &Sender,
        effects: &EffectsBuilder<'_>,
    ) -> Result<Option<Posted>, Refusal> {
        let first = match self {
            Self::Unused => return Ok(None),
            Self::Deleted => return Err(Refusal::HasEnded(EntityKind::Message)),
            Self::Used(first) => first,
        };
        let FirstUse { message, text, deliveries } = *first;
        if message.sender != *sender || message.destination != Destination::Room(post.room.clone()) {
            return Err(Refusal::BelongsToAnother(EntityKind::Message));
        }
        let attached = message.attachments.iter().map(|Attachment { id, .. }| id.as_str());
        // The reply of a run has no attachments and answers its trigger.
        let same = *text == *post.text
            && (message.run_output.is_some()
                || message.reply_to == post.reply_to
                    && attached.eq(post.attachments.iter().map(|attachment| &**attachment)));
        if !same {
            return Err(Refusal::Conflict { first: message.id.clone() });
        }
        Ok(Some(Posted {
            id: message.id.clone(),
            position: effects.position(message.seq),
            message: Some(message),
            deliveries: deliveries.into(),
            repeated: true,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::commands::test_fixtures::{FixedId, NOW, room_message};
    use crate::permission::CallerContext;
    use parlor_model::{Caller, Epoch, Position, RoomId, Seq, UserId};

    fn post(text: &str) -> Post {
        Post {
            id: Some(MessageId::stored("chosen")),
            room: RoomId::stored("lobby"),
            text: text.into(),
            mentions: Vec::new(),
            reply_to: None,
            attachments: Vec::new(),
            client_message_id: None,
            origin: None,
            author: None,
        }
    }

    fn used(text: &str) -> ChosenId {
        let message = Message {
            id: MessageId::stored("chosen"),
            sender: Sender::User(UserId::stored("ann")),
            text: "edited".into(),
            ..Message::clone(&room_message(&RoomId::stored("lobby")))
        };
        let deliveries = Vec::new();
        ChosenId::Used(Box::new(FirstUse { message: Arc::new(message), text: text.into(), deliveries }))
    }

    fn receipt(id: ChosenId, post: &Post, sender: &str) -> Result<Option<Posted>, Refusal> {
        let (limits, head) = (Limits::default(), Position { epoch: Epoch(1), seq: Seq(10) });
        let caller = CallerContext { caller: Caller::OPERATOR, auth: None };
        let effects = EffectsBuilder::new(NOW, head, &caller, &FixedId, &limits);
        id.first_receipt(post, &Sender::User(UserId::stored(sender)), &effects)
    }

    #[test]
    fn only_the_same_post_of_the_same_sender_may_repeat_an_id() {
        assert_eq!(receipt(ChosenId::Unused, &post("hi"), "ann"), Ok(None));
        let first = receipt(used("hi"), &post("hi"), "ann").unwrap().unwrap();
        assert!(first.repeated && first.id.as_str() == "chosen");
        let conflict = Refusal::Conflict { first: MessageId::stored("chosen") };
        assert_eq!(receipt(used("hi"), &post("edited"), "ann"), Err(conflict.clone()));
        let reply = Post { reply_to: Some(MessageId::stored("other")), ..post("hi") };
        assert_eq!(receipt(used("hi"), &reply, "ann"), Err(conflict));
        let another = Refusal::BelongsToAnother(EntityKind::Message);
        assert_eq!(receipt(used("hi"), &post("hi"), "bob"), Err(another.clone()));
        let elsewhere = Post { room: RoomId::stored("other"), ..post("hi") };
        assert_eq!(receipt(used("hi"), &elsewhere, "ann"), Err(another));
        let ended = Refusal::HasEnded(EntityKind::Message);
        assert_eq!(receipt(ChosenId::Deleted, &post("hi"), "ann"), Err(ended));
    }
}
