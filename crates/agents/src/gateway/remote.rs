//! A gateway on its own: finds the hub, and finds it again whenever it is lost.

use super::Gateway;
use super::connect::{self, Connection, connect};
use super::sign_in::{ConnectError, SignIn};
use super::store::GatewayStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use url::Url;

const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A connection that held for so long was a good one.
const STABLE_AFTER: Duration = Duration::from_secs(2);

/// How the connection does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionStatus {
    Connected,
    Lost { why: String, again: Duration },
}

/// Where the hub is.
pub struct Remote {
    pub server: Url,
    pub sign_in: SignIn,
    pub data: Arc<GatewayStore>,
    pub line: mpsc::Sender<ConnectionStatus>,
}

impl Remote {
    /// For ever, unless the hub turns the gateway away before it ever took it.
    pub async fn host(mut self, gateway: &mut Gateway) -> Result<(), ConnectError> {
        let id = self.data.gateway();
        let (mut wait, mut known) = (FIRST_WAIT, false);
        loop {
            let connected = tokio::select! {
                connected = connect(&self.server, &id, &mut self.sign_in) => connected,
                () = gateway.idle() => continue,
            };
            let why = match connected {
                Ok(Connection { link, over }) => {
                    known = true;
                    let _ = self.line.try_send(ConnectionStatus::Connected);
                    let began = Instant::now();
                    let outgoing = link.outgoing.clone();
                    let renewing = renew(&mut self.sign_in, &id, outgoing);
                    tokio::select! {
                        () = gateway.serve(link) => {}
                        () = renewing => {}
                    }
                    if began.elapsed() >= STABLE_AFTER {
                        wait = FIRST_WAIT;
                    }
                    over.await.unwrap_or_else(|_| "the connection broke down".into())
                }
                Err(ConnectError::Wrong(why)) if !known => return Err(ConnectError::Wrong(why)),
                Err(refused) => refused.to_string(),
            };
            // Gateways that were lost together do not come back together.
            let again = wait.mul_f64(0.5 + fraction());
            wait = (wait * 2).min(LONGEST_WAIT);
            let _ = self.line.try_send(ConnectionStatus::Lost { why, again });
            tokio::select! {
                () = sleep(again) => {}
                () = gateway.idle() => {}
            }
        }
    }
}

/// Keeps a sign-in alive, and shows the hub what is newest on the same connection. Never ends while that is open.
async fn renew(sign_in: &mut SignIn, id: &parlor_model::GatewayId, outgoing: mpsc::Sender<String>) {
    while let Some(renewal) = sign_in.renewal() {
        tokio::select! {
            () = sleep(renewal) => {}
            () = outgoing.closed() => break,
        }
        match sign_in.token(true).await {
            Ok(token) => drop(outgoing.send(connect::auth(id, &token)).await),
            Err(error) => tracing::warn!(%error, "the sign-in cannot be renewed"),
        }
    }
    // The clone must not keep the connection open.
    drop(outgoing);
    std::future::pending().await
}

fn fraction() -> f64 {
    let mut byte = [0];
    // Without chance they come back together, which is no harm to one.
    let _ = getrandom::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}
