//! Commands on mailboxes, routes and subscriptions, and their receipts.

use crate::{Delivery, Mailbox, Message, MessageId, Path, Pattern, Payload, Position, RoomId, Time};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Subscribes a mailbox to the paths that a pattern matches. Returns all subscriptions of the mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribe {
    pub mailbox: Mailbox,
    pub pattern: Pattern,
}

/// Removes a subscription. Returns the remaining subscriptions of the mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsubscribe {
    pub mailbox: Mailbox,
    pub pattern: Pattern,
}

/// Sends a message along a path to the subscribed mailboxes, or to a room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Sender: the id of one of the caller's agents, or the name of an external source.
    pub from: Box<str>,
    pub path: Path,
    pub command: Box<str>,
    pub payload: Payload,
    /// Readable text of the payload, which a room shows; `None` if the payload has none.
    pub text: Option<Arc<str>>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
}

/// Publishes messages on a path outside rooms in one transaction: the hub stores all of them or none. Subscribed
/// mailboxes receive copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    pub path: Path,
    /// Unverified name of the publisher, for display.
    pub sender_name: Box<str>,
    pub source: Box<str>,
    pub messages: Vec<PathMessage>,
}

/// A message that is published on a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathMessage {
    /// Name that the publisher chose for the message, such as an event name. May be empty.
    pub name: Box<str>,
    pub payload: Payload,
    /// Idempotency key of the first message: a retry with the same key publishes nothing.
    pub external_id: Box<str>,
    /// Connection that publishes the message. A retry may come from another one.
    pub connection: Option<Box<str>>,
}

/// Receipt of [`Publish`]: the messages in the order of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    pub messages: Vec<(MessageId, Position)>,
    /// Whether an earlier command has published these messages.
    pub repeated: bool,
}

/// Posts a message in a room on behalf of an author outside the hub, such as the writer of a line in chat.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    pub room: RoomId,
    /// Name of the author. If it names an agent of the caller that is a member of the room, the message is
    /// posted as that agent; otherwise by the caller's account, with the name as an unverified label.
    pub author: Box<str>,
    /// Name of the member that the message addresses; `None` for the whole room.
    pub recipient: Option<Box<str>>,
    /// Names of members that receive a copy, which starts no run.
    pub observers: Vec<Box<str>>,
    pub text: Arc<str>,
    /// The message that the author answers. The relayed message continues its chain of agents.
    pub continues: Option<MessageId>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
}

/// Takes pending mail. With a lease, mail that is not acknowledged before the lease expires is pending
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiveMail {
    pub mailbox: Mailbox,
    pub limit: usize,
    pub lease: Option<Duration>,
}

/// Messages with their copies for one mailbox.
pub type ReceivedMail = Vec<(Arc<Message>, Delivery)>;

/// Marks mail as delivered. Returns the number of messages that were pending or leased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcknowledgeMail {
    pub mailbox: Mailbox,
    pub messages: Vec<MessageId>,
}

/// Delivers a dead letter again and removes it. A message that reached no mailbox is routed to today's subscribers of
/// its path. A message that a mailbox did not acknowledge becomes pending there, without earlier attempts. Returns the
/// copies that are pending now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResendDeadLetter {
    pub message: MessageId,
    /// Mailbox of the dead letter; `None` if the message reached no mailbox.
    pub mailbox: Option<Mailbox>,
}

/// Adds messages that another program has delivered to a mailbox. A message whose id exists is not stored again; it is
/// added to the mailbox if it has the same path and payload. Without a mailbox, the other program has delivered the messages to
/// none: those whose id does not exist become dead letters. Returns the number of messages added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportMail {
    pub mailbox: Option<Mailbox>,
    pub messages: Vec<ImportedMessage>,
}

/// A message with the id and the time that another program gave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedMessage {
    pub id: MessageId,
    pub at: Time,
    /// Id of an agent, or the name of a source.
    pub from: Box<str>,
    pub path: Path,
    pub command: Box<str>,
    pub payload: Payload,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
    /// Whether the other program has handed the message out.
    pub is_delivered: bool,
}

/// Removes all dead letters of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearDeadLetters;
