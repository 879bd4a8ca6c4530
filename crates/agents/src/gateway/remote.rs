//! A gateway in its own process: connects to the hub over the network, and reconnects with exponential
//! backoff.
//!
//! Owns: the task of the connection, which [`Remote::close`] awaits.

use super::Gateway;
use super::connect::{self, Connection, connect};
use super::sign_in::{ConnectError, SignIn};
use super::store::GatewayStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// Delay before the first reconnect; it doubles with each failed attempt.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay between two attempts to connect, before jitter.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Minimum duration of a connection that resets the retry delay.
const STABLE_AFTER: Duration = Duration::from_secs(2);
/// Timeout for sending the queued frames and the close frame to a hub that may not be reading.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Changes of the connection, for display to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionStatus {
    Connected,
    Lost { why: String, again: Duration },
}

/// The hub to connect to, and the credentials and identity of the gateway.
pub struct Remote {
    server: Url,
    sign_in: SignIn,
    data: Arc<GatewayStore>,
    line: mpsc::Sender<ConnectionStatus>,
    /// Task of the current connection. Stored here because the caller may drop the future of `host`.
    connection: Option<AbortOnDropHandle<String>>,
}

impl Remote {
    pub fn new(
        server: Url,
        sign_in: SignIn,
        data: Arc<GatewayStore>,
        line: mpsc::Sender<ConnectionStatus>,
    ) -> Self {
        Self { server, sign_in, data, line, connection: None }
    }

    /// Serves the gateway over changing connections. Returns only if the hub rejects the credentials before
    /// the first successful connection. After dropping this future, the caller calls [`Remote::close`].
    pub async fn host(&mut self, gateway: &mut Gateway) -> Result<(), ConnectError> {
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
                    let over = self.connection.insert(over);
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
                    let why = over.await.unwrap_or_else(|_| "the connection failed".into());
                    self.connection = None;
                    why
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

    /// Closes the connection that a dropped `host` left open, and waits until its task has ended.
    pub async fn close(self) {
        let Some(mut connection) = self.connection else { return };
        if timeout(CLOSE_TIMEOUT, &mut connection).await.is_err() {
            connection.abort();
            let _ = connection.await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::SpawnPolicy;
    use crate::gateway::sign_in::Credentials;
    use crate::gateway::trust::Trust;
    use std::net::TcpListener;
    use std::thread;
    use tokio_tungstenite::tungstenite::{Message, accept};

    /// Accepts one gateway and returns whether it sent a close frame before its socket was closed.
    fn receives_close_frame(listener: &TcpListener) -> bool {
        let mut socket = accept(listener.accept().unwrap().0).unwrap();
        assert!(socket.read().unwrap().is_text(), "a gateway authenticates first");
        socket.send(Message::text(r#"{"type":"server:gateway_auth_result","ok":true}"#)).unwrap();
        loop {
            match socket.read() {
                Ok(Message::Close(_)) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    #[test]
    fn a_connection_has_sent_its_close_frame_when_close_returns() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let hub = thread::spawn(move || receives_close_frame(&listener));
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let data = Arc::new(GatewayStore::open(directory.path()).unwrap());
            let mut gateway = Gateway::new(data.clone(), SpawnPolicy::default(), mpsc::channel(1).0).unwrap();
            let credentials = Credentials::Key("key".into());
            let sign_in = SignIn::new(server.clone(), Trust::new(None).unwrap(), credentials).unwrap();
            let (line, mut statuses) = mpsc::channel(8);
            let mut remote = Remote::new(server, sign_in, data, line);
            tokio::select! {
                hosted = remote.host(&mut gateway) => panic!("the gateway is not hosted: {hosted:?}"),
                status = statuses.recv() => assert_eq!(status, Some(ConnectionStatus::Connected)),
            }
            remote.close().await;
        });
        // A task that is still running now ends without a close frame.
        drop(runtime);
        assert!(hub.join().unwrap());
    }
}
