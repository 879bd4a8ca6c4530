//! AUTH: a client presents a new token on a live connection.

use super::attach::{Attached, open_feed};
use super::credentials;
use super::encoder::encode;
use super::principal;
use super::session::{Connected, Expiry, details};
use crate::connection::peer::Peer;
use crate::http::rate_limits::RateLimitKey;
use parlor_engine::feed::Since;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::Frame;
use parlor_wire::ably::serial::ConnectionKey;

impl Connected {
    /// Continues with the rights of another token and answers CONNECTED. Channels that the token does not permit fail.
    /// An error ends the connection.
    pub async fn reauthorise(&mut self, peer: &Peer, frame: Frame<'static>) -> Result<(), ErrorInfo> {
        let missing = || ErrorInfo::new(codes::NO_CREDENTIALS, "AUTH needs a token");
        let auth = frame.auth.ok_or_else(missing)?;
        let app = &peer.app;
        let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
        // Verifying a credential reads the store, like a request.
        let counted = app.limits.count(&RateLimitKey::User(session.user().clone()));
        counted.map_err(|refusal| codes::error(&refusal))?;
        let token = Some(auth.access_token.as_str());
        let mut caller = credentials::of_connection(app, None, token, None, self.address).await?;
        if let (Some(own), Some(given)) = (self.caller.identity.announced(), caller.identity.announced())
            && own != given
        {
            if given != "*" {
                let message = "clientId differs from that of the connection";
                return Err(ErrorInfo::new(codes::INCOMPATIBLE_CLIENT_ID, message));
            }
            // A token that permits any client id keeps the client id of the connection.
            caller.identity = self.caller.identity.clone();
        }
        session.reauthorise(caller.caller.clone()).await.map_err(|refusal| codes::error(&refusal))?;
        self.presence.set_caller(&caller.caller).await.map_err(|refusal| codes::error(&refusal))?;
        self.expiry = Expiry::of(&caller, app);
        self.caller = caller;
        let key = ConnectionKey { connection: self.id.clone(), issued_at: app.hub.now() };
        let key = credentials::connection_secret(app).sign(&key, &principal(&self.caller.caller));
        let connected = Frame::connected(self.id.as_str(), details(app, &self.caller, key));
        peer.outbox.push(encode(&connected, self.format));
        for failed in self.openings.settle_all().await {
            self.close_channel(peer, &failed);
        }
        let names: Vec<Box<str>> = self.channels.keys().cloned().collect();
        for name in names {
            if let Err(error) = self.check_channel(peer, &name).await {
                self.close_channel(peer, &name);
                peer.outbox.push(encode(&Frame::error(Some(&name), error), self.format));
            }
        }
        Ok(())
    }

    /// Opens the feed of a channel again, which checks its permission.
    async fn check_channel(&mut self, peer: &Peer, name: &str) -> Result<(), ErrorInfo> {
        let Some(Attached { channel, requested, codec, .. }) = self.channels.get(name) else { return Ok(()) };
        let (channel, requested, codec) = (channel.clone(), *requested, *codec);
        let modes = self.modes_in(&channel, requested)?;
        let attached = Attached { channel, requested, modes, codec };
        if let Some(open) = self.feed(peer, &attached, Since::Now, None) {
            open_feed(peer, open).await?;
        }
        self.channels.insert(name.into(), attached);
        Ok(())
    }
}
