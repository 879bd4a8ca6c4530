//! A broker connection inside the hub's process, for connectors of the settings file.

use super::{Broker, BrokerInput};
use crate::App;
use crate::connection::session_loop;
use crate::connection::stream::Stream;
use crate::connection::upgrade::Upgraded;
use bytes::Bytes;
use parlor_model::{Caller, Refusal, UserId};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::io::DuplexStream;

/// Bytes that each direction of the connection buffers before its writer waits.
const BUFFER_BYTES: usize = 64 * 1024;
/// Name of the connection in the metrics.
const ENDPOINT: &str = "connector";

/// Opens a connection that acts as the given account and returns the client's end, a WebSocket after its
/// handshake. The hub authenticates the connection itself: `auth.ok` is the first frame. The session ends when
/// the returned stream is dropped or the hub stops.
pub fn connect_broker_locally(app: &Arc<App>, user: UserId) -> Result<DuplexStream, Refusal> {
    let permit = app.connection_limiter.unauthenticated(IpAddr::V4(Ipv4Addr::LOCALHOST))?;
    let (client, server) = tokio::io::duplex(BUFFER_BYTES);
    let upgraded = Upgraded {
        stream: Stream::Local(server),
        already_read: Bytes::new(),
        permit,
        socket_guard: app.open_sockets.begin(ENDPOINT),
    };
    let first = BrokerInput::Local(Caller::connector(user));
    app.tasks.spawn(session_loop::run(app.clone(), upgraded, Broker, Some(first)));
    Ok(client)
}
