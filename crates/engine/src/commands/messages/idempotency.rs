//! Idempotency keys: a retry of a posted message returns the receipt of the first request.

use crate::Fault;
use crate::digest::{digest, hex};
use crate::effects::EffectsBuilder;
use crate::ports::{FirstRequest, IdempotencyKey, IdempotencyKind, Lookup};
use parlor_model::command::Posted;
use parlor_model::{Delivery, Message, Refusal, UserId};
use std::sync::Arc;

/// Idempotency key of a request, the digest of its body, and the first request with this key, if any.
#[derive(Debug, Clone)]
pub struct IdempotencyCheck {
    pub key: IdempotencyKey,
    pub digest: [u8; 16],
    pub first: Option<FirstRequest>,
    pub first_message: Option<Arc<Message>>,
    pub first_deliveries: Vec<Delivery>,
}

impl IdempotencyCheck {
    /// Looks up the id that a client chose for its message, if it chose one.
    pub fn of_client_message(
        sender: &UserId,
        id: Option<&str>,
        digest: impl FnOnce() -> [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Self>, Fault> {
        let Some(id) = id else { return Ok(None) };
        let (kind, owner) = (IdempotencyKind::ClientMessage, sender.as_str().into());
        Self::load(IdempotencyKey { kind, owner, key: id.into() }, digest(), store).map(Some)
    }

    /// Looks up the id that a message from outside has in its source, if it has one.
    pub fn of_external_message(
        sender: &UserId,
        source: &str,
        id: Option<&str>,
        digest_of_body: impl FnOnce() -> [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<Self>, Fault> {
        let Some(id) = id else { return Ok(None) };
        let body = digest_of_body();
        // Messages of one external thread may share an id, so only the same message with the same id is a
        // retry.
        let key = hex(&digest(&[source, id, &hex(&body)])).into();
        // Callers choose the source name, so the key belongs to the caller: it cannot block another caller's
        // messages.
        let (kind, owner) = (IdempotencyKind::External, sender.as_str().into());
        Self::load(IdempotencyKey { kind, owner, key }, body, store).map(Some)
    }

    pub fn load(
        key: IdempotencyKey,
        digest: [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Self, Fault> {
        let first = store.first_use(&key)?;
        let (mut first_message, mut first_deliveries) = (None, Vec::new());
        if let Some(first) = &first {
            first_message = store.message(&first.message)?;
            first_deliveries = store.deliveries(&first.message)?;
        }
        Ok(Self { key, digest, first, first_message, first_deliveries })
    }

    /// The receipt of the first request, if this is a retry; a refusal, if the key was used for a different
    /// request.
    pub fn first_receipt(
        check: Option<&Self>,
        effects: &EffectsBuilder<'_>,
    ) -> Result<Option<Posted>, Refusal> {
        let Some((check, first)) = check.and_then(|check| Some((check, check.first.as_ref()?))) else {
            return Ok(None);
        };
        if first.digest != check.digest {
            return Err(Refusal::Conflict { first: first.message.clone() });
        }
        Ok(Some(Posted {
            id: first.message.clone(),
            position: effects.position(first.seq),
            message: check.first_message.clone(),
            deliveries: check.first_deliveries.clone().into(),
            repeated: true,
        }))
    }
}
