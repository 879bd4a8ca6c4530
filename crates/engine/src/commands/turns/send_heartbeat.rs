//! Sends a heartbeat to an agent: a message of the hub on the agent's own path.

use crate::commands::Command;
use crate::commands::messages::recipients::{deliveries, put_message};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::routing_index::Recipient;
use parlor_model::command::{Posted, SendHeartbeat};
use parlor_model::{Agent, Destination, EntityKind, Mailbox, Message, Path, Payload, Refusal, Sender};
use std::sync::Arc;

/// Sender of heartbeats. The name contains a `/`, so no user name is equal to it.
const SENDER: &str = "system/heartbeat";
const SOURCE: &str = "heartbeat";
/// Number of the oldest pending messages of the agent that are searched for an earlier heartbeat.
const PENDING_SEARCHED: usize = 100;

pub struct Facts {
    agent: Arc<Agent>,
    path: Path,
    mailboxes: Vec<Recipient>,
    /// Whether an earlier heartbeat is pending.
    is_waiting: bool,
}

impl Command for SendHeartbeat {
    type Facts = Facts;
    /// `None` if an earlier heartbeat is still pending: heartbeats do not pile up for an agent that is offline.
    type Receipt = Option<Posted>;

    /// Only the hub itself sends heartbeats.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let no_heartbeat = || Refusal::NotFound(EntityKind::Agent);
        let agent = view.agent(&self.agent)?.ok_or_else(no_heartbeat)?;
        if agent.heartbeat().as_deref() != Some(&*self.cron) {
            return Err(no_heartbeat().into());
        }
        let path = Path::parse(&format!("agent/{}", agent.id)).map_err(|_| no_heartbeat())?;
        let mut mailboxes = Vec::new();
        for recipient in view.routes.matching(&path) {
            let owner = view.agent(&recipient.mailbox.agent)?.map(|agent| agent.owner.clone());
            if owner.as_ref() == Some(&agent.owner) {
                mailboxes.push(recipient);
            }
        }
        let own = Mailbox::of(agent.id.clone());
        let now = view.now;
        let pending = view.store.pending(&own, now, PENDING_SEARCHED)?;
        let is_heartbeat = |message: &Message| {
            matches!(&message.sender, Sender::Source(name) if **name == *SENDER) && *message.source == *SOURCE
        };
        let is_waiting = pending.iter().any(|(message, _)| is_heartbeat(message));
        Ok(Facts { agent, path, mailboxes, is_waiting })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Option<Posted>, Refusal> {
        let Facts { agent, path, mailboxes, is_waiting } = facts;
        if is_waiting {
            return Ok(None);
        }
        debug_assert_eq!(agent.id, self.agent);
        let payload =
            serde_json::json!({ "scheduled": true, "cron": &*self.cron, "firedAt": effects.now.millis() });
        let sender = Sender::Source(SENDER.into());
        let message = Arc::new(Message {
            command: Some("heartbeat".into()),
            payload: Some(Payload(payload.to_string().into())),
            source: SOURCE.into(),
            ..effects.message(Destination::Path(path), sender, SENDER.into(), Arc::default())
        });
        let deliveries = deliveries(&message, &mailboxes, &[]);
        Ok(Some(put_message(message, deliveries, None, effects)))
    }
}
