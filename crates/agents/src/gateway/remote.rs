//! A gateway in its own process: connects to the hub over the network, and reconnects with exponential
//! backoff.

use super::Gateway;
use super::connect::{self, Connection, connect};
use super::sign_in::{ConnectError, SignIn};
use super::store::GatewayStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use url::Url;

/// Delay before the first reconnect; it doubles with each failed attempt.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay between two attempts to connect, before jitter.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Minimum duration of a connection that resets the retry delay.
const STABLE_AFTER: Duration = Duration::from_secs(2);

/// Changes of the connection, for display to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionStatus {
    Connected,
    Lost { why: String, again: Duration },
}

/// The hub to connect to, and the credentials and identity of the gateway.
pub struct Remote {
    pub server: Url,
    pub sign_in: SignIn,
    pub data: Arc<GatewayStore>,
    pub line: mpsc::Sender<ConnectionStatus>,
}

impl Remote {
    /// Serves the gateway over changing connections. Returns only if the hub rejects the credentials before
    /// the first successful connection.
    pub async fn host(mut self, gateway: &mut Gateway) -> Result<(), ConnectError> {
        let id = self.data.gateway();
        let (mut delay, mut was_connected) = (MIN_RETRY_DELAY, false);
        loop {
            let connected = tokio::select! {
                connected = connect(&self.server, &id, &mut self.sign_in) => connected,
                () = gateway.idle() => continue,
            };
            let why = match connected {
                Ok(Connection { link, over }) => {
                    was_connected = true;
                    let _ = self.line.try_send(ConnectionStatus::Connected);
                    let started = Instant::now();
                    let outgoing = link.outgoing.clone();
                    let renewal = renew(&mut self.sign_in, &id, outgoing);
                    tokio::select! {
                        () = gateway.serve(link) => {}
                        () = renewal => {}
                    }
                    if started.elapsed() >= STABLE_AFTER {
                        delay = MIN_RETRY_DELAY;
                    }
                    over.await.unwrap_or_else(|_| "the connection failed".into())
                }
                Err(ConnectError::Wrong(why)) if !was_connected => return Err(ConnectError::Wrong(why)),
                Err(error) => error.to_string(),
            };
            // Jitter, so that gateways that lost the hub together do not reconnect together.
            let again = delay.mul_f64(0.5 + random_fraction());
            delay = (delay * 2).min(MAX_RETRY_DELAY);
            let _ = self.line.try_send(ConnectionStatus::Lost { why, again });
            tokio::select! {
                () = sleep(again) => {}
                () = gateway.idle() => {}
            }
        }
    }
}

/// Renews the sign-in before its token expires, and sends each new token over the same connection. Never
/// returns.
async fn renew(sign_in: &mut SignIn, id: &parlor_model::GatewayId, outgoing: mpsc::Sender<String>) {
    while let Some(renewal) = sign_in.renewal() {
        tokio::select! {
            () = sleep(renewal) => {}
            () = outgoing.closed() => break,
        }
        match sign_in.token(true).await {
            Ok(token) => drop(outgoing.send(connect::auth(id, &token)).await),
            Err(error) => tracing::warn!(%error, "cannot renew the sign-in"),
        }
    }
    // This sender is a clone, which must not keep the connection open.
    drop(outgoing);
    std::future::pending().await
}

fn random_fraction() -> f64 {
    let mut byte = [0];
    // Without random bytes the fraction is 0, which only loses the jitter.
    let _ = getrandom::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}
