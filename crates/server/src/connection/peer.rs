//! The client of a connection: its identity, its share of the connection limits, and its outbox.

use super::admission::admit;
use super::concurrency::ConcurrencyPermit;
use super::frame;
use super::protocol::Protocol;
use crate::App;
use bytes::Bytes;
use parlor_engine::feed::{DisconnectReason, Encoding, NewSession, Outbox, Session};
use parlor_engine::permission::AuthContext;
use parlor_engine::queries::Query;
use parlor_model::query::GetAuthContext;
use parlor_model::{Caller, Refusal};
use std::sync::Arc;

/// Maximum failed sign-ins of a connection.
const MAX_FAILED_SIGN_INS: u32 = 5;

pub struct Peer {
    pub app: Arc<App>,
    pub outbox: Arc<Outbox>,
    /// `None` until the client has authenticated.
    pub identity: Option<Identity>,
    encoding: Encoding,
    counts_as_presence: bool,
    enters_places: bool,
    /// Counts the connection towards its address until the client authenticates.
    unauthenticated_permit: Option<ConcurrencyPermit>,
    failed_sign_ins: u32,
}

pub struct Identity {
    /// Shared with tasks of the connection that open feeds.
    pub session: Arc<Session>,
    /// Counts the connection towards its user.
    _permit: ConcurrencyPermit,
}

impl Peer {
    pub fn new<P: Protocol>(
        app: Arc<App>,
        outbox: Arc<Outbox>,
        permit: ConcurrencyPermit,
        protocol: &P,
    ) -> Self {
        Self {
            encoding: protocol.encoding(),
            counts_as_presence: P::COUNTS_AS_PRESENCE,
            enters_places: P::ENTERS_PLACES,
            app,
            outbox,
            identity: None,
            unauthenticated_permit: Some(permit),
            failed_sign_ins: 0,
        }
    }

    /// Queues a frame past the pending replies. Only for requests that are not pipelined.
    pub fn send_text(&self, text: &str) {
        self.outbox.push(frame::text(text));
    }

    pub fn close(&self, code: u16, reason: &str) {
        self.outbox.close(frame::close(code, reason));
    }

    pub fn disconnect(&self, reason: DisconnectReason) {
        self.outbox.disconnect(reason);
    }

    /// Checks a repeated sign-in: the same user may present a newer token, which changes nothing. Returns
    /// `false` if the connection has not authenticated yet.
    pub async fn has_signed_in_as(&self, caller: &Caller) -> Result<bool, Refusal> {
        let Some(identity) = &self.identity else { return Ok(false) };
        let auth_context = self.app.hub.read(caller, GetAuthContext).await?;
        if *identity.session.user() != auth_context.user.id {
            return Err(Refusal::NotSignedIn);
        }
        Ok(true)
    }

    /// Authenticates the connection: begins its session, sends `greeting`, and moves the connection from the limit of
    /// its address to the limit of its user.
    pub async fn admit(&mut self, caller: Caller, greeting: Bytes) -> Result<AuthContext, Refusal> {
        let (outbox, present) = (self.outbox.clone(), self.counts_as_presence);
        let enters_places = self.enters_places;
        let new = NewSession { outbox, encoding: self.encoding, present, enters_places, greeting };
        let (session, auth_context, permit) =
            admit(&self.app, &mut self.unauthenticated_permit, &caller, new).await?;
        self.failed_sign_ins = 0;
        self.identity = Some(Identity { session: Arc::new(session), _permit: permit });
        Ok(auth_context)
    }

    /// Sends the reply to a failed sign-in, and closes the connection after too many of them.
    pub fn sign_in_failed(&mut self, reply: &str) {
        self.failed_sign_ins += 1;
        self.send_text(reply);
        let has_no_permit = self.unauthenticated_permit.is_none() && self.identity.is_none();
        if has_no_permit || self.failed_sign_ins >= MAX_FAILED_SIGN_INS {
            self.close(1008, "Too many authentication attempts");
        }
    }

    /// Releases the permit of a connection that has not authenticated. Returns whether it had one.
    pub fn release_unauthenticated_permit(&mut self) -> bool {
        self.unauthenticated_permit.take().is_some()
    }

    /// Reads the answer to a query of the authenticated client.
    pub async fn read<Q: Query>(&self, query: Q) -> Result<Q::Answer, Refusal> {
        let caller = self.signed_in()?.session.caller();
        self.app.hub.read(&caller, query).await
    }

    /// Returns the identity, or the refusal for requests that need one.
    pub fn signed_in(&self) -> Result<&Identity, Refusal> {
        self.identity.as_ref().ok_or(Refusal::NotSignedIn)
    }
}
