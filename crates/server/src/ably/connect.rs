//! Start of a connection: authentication, resume, and the CONNECTED frame.

use super::encoder::encode;
use super::handshake::Handshake;
use super::jaibber::ProjectChannels;
use super::openings::Openings;
use super::session::{AblyConnection, Connected, Expiry, details};
use super::{credentials, principal};
use crate::auth::secrets::random_bytes;
use crate::connection::peer::Peer;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::Frame;
use parlor_wire::ably::serial::{ConnectionId, ConnectionKey};
use std::collections::HashMap;

impl AblyConnection {
    /// Authenticates the connection of a handshake and sends CONNECTED, or rejects and closes it.
    pub(super) async fn connect(&mut self, peer: &mut Peer, handshake: Handshake) {
        match self.establish(peer, handshake).await {
            Ok(connected) => self.connected = Some(Box::new(connected)),
            Err(error) => self.reject(peer, error),
        }
    }

    async fn establish(&self, peer: &mut Peer, handshake: Handshake) -> Result<Connected, ErrorInfo> {
        if let Some(error) = handshake.error {
            return Err(error);
        }
        let (key, token) = (handshake.key.as_deref(), handshake.token.as_deref());
        let client_id = handshake.client_id.as_deref();
        let app = peer.app.clone();
        let caller = credentials::of_connection(&app, key, token, client_id, handshake.address).await?;
        let (principal, now) = (principal(&caller.caller), app.hub.now());
        let secret = credentials::connection_secret(&app);
        let resumed = handshake.resume.as_deref().map(|key| {
            let key = secret.verify(key, &principal)?;
            app.ably_connections.may_resume(&key.connection, now).map(|()| key.connection)
        });
        let (id, error) = match resumed {
            Some(Ok(id)) => (id, None),
            // The client continues with a new connection and attaches its channels again.
            Some(Err(error)) => (ConnectionId::from_random(random_bytes()), Some(error)),
            None => (ConnectionId::from_random(random_bytes()), None),
        };
        let key = secret.sign(&ConnectionKey { connection: id.clone(), issued_at: now }, &principal);
        let greeting = Frame { error, ..Frame::connected(id.as_str(), details(&app, &caller, key)) };
        let greeting = encode(&greeting, self.format());
        // The encoder needs the id before it encodes the first item.
        self.own.begin(&id);
        let auth_context =
            peer.admit(caller.caller.clone(), greeting).await.map_err(|refusal| codes::error(&refusal))?;
        // A token may have been revoked since it was verified. From now on, a revocation closes the connection.
        let caller = match caller.is_token {
            true => credentials::of_connection(&app, None, token, client_id, handshake.address).await?,
            false => caller,
        };
        let presence = app.hub.resume_presence(&caller.caller, id.as_str());
        let mut presence = presence.map_err(|refusal| codes::error(&refusal))?;
        // The members of a resumed connection leave the places that the new credential does not permit.
        presence.set_caller(&caller.caller).await.map_err(|refusal| codes::error(&refusal))?;
        let generation = app.ably_connections.begin(&id, peer.outbox.clone());
        Ok(Connected {
            generation,
            id,
            format: self.format(),
            echo: self.echo(),
            own: self.own.clone(),
            address: handshake.address,
            username: auth_context.user.username.clone(),
            presence,
            projects: ProjectChannels::default(),
            channels: HashMap::new(),
            openings: Openings::default(),
            expiry: Expiry::of(&caller, &app),
            caller,
            is_closed: false,
        })
    }
}
