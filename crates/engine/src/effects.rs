//! Effects of a decided command: changes to the tables, events to publish, changes to the routing index.
//!
//! `EffectsBuilder` is all that `Command::decide` gets besides its facts: it numbers events and creates ids,
//! and it reads nothing.

use crate::Limits;
use crate::changes::{AuditChange, Change};
use crate::permission::CallerContext;
use crate::ports::IdGenerator;
use crate::routing_index::RouteChange;
use parlor_model::audit::{Action, Actor, NewAuditEntry, Subject};
use parlor_model::{
    AgentId, Destination, Epoch, Event, LoggedEvent, Message, MessageId, MessageKind, Position, Sender, Seq,
    Time,
};
use std::sync::Arc;

/// Everything that a decided command changes and publishes.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    pub changes: Vec<Change>,
    pub events: Vec<LoggedEvent>,
    pub route_changes: Vec<RouteChange>,
    /// Agents that got pending mail without an event about it.
    pub mail_of: Vec<AgentId>,
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
    mail_of: Vec<AgentId>,
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
        let (changes, events, routes, mail_of) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (epoch, head) = (head.epoch, head.seq);
        Self { now, limits, caller, ids, epoch, head, changes, events, routes, mail_of }
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
            origin: None,
            answer: None,
        }
    }

    pub fn change(&mut self, change: impl Into<Change>) {
        self.changes.push(change.into());
    }

    pub fn publish(&mut self, event: Event) {
        self.events.push(LoggedEvent { seq: self.next_seq(), at: self.now, event });
    }

    /// Has the sessions of an agent checked for pending mail that no event reports.
    pub fn check_mail_of(&mut self, agent: AgentId) {
        self.mail_of.push(agent);
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
        self.change(AuditChange::AppendAudit(Arc::new(entry)));
    }

    pub fn finish(self) -> Effects {
        let Self { changes, events, routes: route_changes, mail_of, .. } = self;
        Effects { changes, events, route_changes, mail_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::auth;
    use crate::commands::test_fixtures::{FixedId, NOW};
    use parlor_model::audit::{Actor, SubjectKind};
    use parlor_model::{Caller, KeyId, SignInId, UserId};
    use std::net::IpAddr;

    /// The entry that an action of this caller leaves in the audit log.
    fn audited(caller: CallerContext, detail: Option<&str>) -> NewAuditEntry {
        let (head, limits) = (Position { epoch: Epoch(1), seq: Seq(10) }, Limits::default());
        let mut effects = EffectsBuilder::new(NOW, head, &caller, &FixedId, &limits);
        let subject = Subject { kind: SubjectKind::Room, id: "lobby".into(), name: None };
        effects.audit(Action::RoomFrozen, Some(subject), detail.map(Into::into));
        let effects = effects.finish();
        assert!(effects.events.is_empty(), "the audit log is not published");
        let [Change::Audit(AuditChange::AppendAudit(entry))] = &effects.changes[..] else {
            panic!("{:?}", effects.changes)
        };
        NewAuditEntry::clone(entry)
    }

    #[test]
    fn an_audit_entry_names_the_caller_and_its_address() {
        let address: IpAddr = "10.0.0.7".parse().unwrap();
        let (id, name) = (UserId::stored("ann"), "ann".into());
        let person = Caller::person(id.clone(), SignInId::stored("phone")).at(address);
        let entry = audited(CallerContext { caller: person, auth: Some(auth("ann")) }, Some("for a while"));
        assert_eq!(entry.actor, Actor::Person { id: id.clone(), name });
        assert_eq!(
            (entry.at, entry.address, entry.detail.as_deref()),
            (NOW, Some(address), Some("for a while"))
        );
        assert_eq!((entry.action, &*entry.subject.unwrap().id), (Action::RoomFrozen, "lobby"));

        let (key, name) = (KeyId::stored("script"), "ann".into());
        let program = Caller::program(id.clone(), key.clone());
        let entry = audited(CallerContext { caller: program, auth: Some(auth("ann")) }, None);
        assert_eq!(entry.actor, Actor::Program { id, name, key });
        assert_eq!((entry.address, entry.detail), (None, None));

        for (caller, actor) in [(Caller::OPERATOR, Actor::Operator), (Caller::ANONYMOUS, Actor::Nobody)] {
            assert_eq!(audited(CallerContext { caller, auth: None }, None).actor, actor);
        }
    }
}
