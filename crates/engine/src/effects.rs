//! Effects of a decided command: changes to the tables, events to publish, changes to the routing index.
//!
//! `EffectsBuilder` is all that `Command::decide` gets besides its facts: it numbers events and creates ids,
//! and it reads nothing.

use crate::Limits;
use crate::decide::Change;
use crate::permission::CallerContext;
use crate::ports::IdGenerator;
use crate::routing_index::RouteChange;
use parlor_model::audit::{Action, Actor, NewAuditEntry, Subject};
use parlor_model::{
    Destination, Epoch, Event, LoggedEvent, Message, MessageId, MessageKind, Position, Sender, Seq, Time,
};
use std::sync::Arc;

/// Everything that a decided command changes and publishes.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    pub changes: Vec<Change>,
    pub events: Vec<LoggedEvent>,
    pub route_changes: Vec<RouteChange>,
}

/// Collects the effects while a command is decided.
pub struct EffectsBuilder<'a> {
    pub now: Time,
    pub limits: &'a Limits,
    pub(crate) caller: &'a CallerContext,
    pub(crate) ids: &'a dyn IdGenerator,
    epoch: Epoch,
    head: Seq,
    pub(crate) changes: Vec<Change>,
    pub(crate) events: Vec<LoggedEvent>,
    pub(crate) routes: Vec<RouteChange>,
}

impl<'a> EffectsBuilder<'a> {
    /// `head` is the position of the newest event, after which this command's events are numbered.
    pub fn new(
        now: Time,
        head: Position,
        caller: &'a CallerContext,
        ids: &'a dyn IdGenerator,
        limits: &'a Limits,
    ) -> Self {
        let (changes, events, routes) = (Vec::new(), Vec::new(), Vec::new());
        Self { now, limits, caller, ids, epoch: head.epoch, head: head.seq, changes, events, routes }
    }

    pub fn new_id(&self) -> String {
        self.ids.next()
    }

    /// The `Seq` that the next published event will have.
    pub fn next_seq(&self) -> Seq {
        Seq(self.head.0 + self.events.len() as u64 + 1)
    }

    pub fn position(&self, seq: Seq) -> Position {
        Position { epoch: self.epoch, seq }
    }

    /// A new text message, without the fields that only some messages have. It gets the next `Seq`, so its event
    /// must be published next.
    pub fn message(
        &self,
        destination: Destination,
        sender: Sender,
        sender_name: Box<str>,
        text: Arc<str>,
    ) -> Message {
        Message {
            id: MessageId::stored(self.new_id()),
            seq: self.next_seq(),
            at: self.now,
            destination,
            sender,
            sender_name,
            kind: MessageKind::Text,
            text,
            mentions: Vec::new(),
            reply_to: None,
            thread: None,
            reactions: Vec::new(),
            forwarded: None,
            attachments: Vec::new(),
            client_message_id: None,
            command: None,
            payload: None,
            source: "internal".into(),
            external_id: None,
            edited_at: None,
            run_output: None,
            relayed: None,
        }
    }

    pub fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub fn publish(&mut self, event: Event) {
        self.events.push(LoggedEvent { seq: self.next_seq(), at: self.now, event });
    }

    /// Records an action of the caller in the audit log.
    pub fn audit(&mut self, action: Action, subject: Option<Subject>, detail: Option<Box<str>>) {
        self.audit_by(self.caller.actor(), action, subject, detail);
    }

    /// Records an action of another actor than the caller in the audit log.
    pub fn audit_by(
        &mut self,
        actor: Actor,
        action: Action,
        subject: Option<Subject>,
        detail: Option<Box<str>>,
    ) {
        let (at, address) = (self.now, self.caller.caller.address);
        let entry = NewAuditEntry { at, actor, action, subject, detail, address };
        self.change(Change::AppendAudit(Arc::new(entry)));
    }

    pub fn finish(self) -> Effects {
        Effects { changes: self.changes, events: self.events, route_changes: self.routes }
    }
}
