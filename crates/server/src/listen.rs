//! Accepts connections, serves the routes of all protocols on them, and shuts them down gracefully.

use crate::connection::stream::Stream;
use crate::http::{Peer, forwarded, rate_limits, trace};
use crate::write_timeout::WriteTimeoutStream;
use crate::{App, ably, agentim, broker, downloads, events, gateway, metrics, rest, web_app};
use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Timeout for the complete headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for a client to read the response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between checks for a new certificate.
const CERTIFICATE_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout for connections to end by themselves after the shutdown notice; then they are dropped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

pub struct RunningServer {
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    /// Disconnects all subscribers, lets running requests finish, and returns when every connection has ended
    /// or `SHUTDOWN_TIMEOUT` has passed.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

pub fn serve(app: Arc<App>, listener: TcpListener) -> std::io::Result<RunningServer> {
    let address = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(accept(app, listener, stopped));
    Ok(RunningServer { address, stop, task })
}

fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(ably::mount))
        .route("/app", get(web_app::home))
        .route("/app/", get(web_app::home))
        .route("/app/{*path}", get(web_app::app))
        .route("/setup", get(web_app::setup))
        .route("/metrics", get(metrics::metrics))
        .route("/register", get(web_app::home))
        .route("/ws/client", get(agentim::mount))
        .route("/ws/broker", get(broker::mount))
        .route("/ws/gateway", get(gateway::mount))
        .route("/api/events", get(events::stream))
        .route("/uploads/{id}", get(downloads::read))
        // The name is ignored; it only makes the link readable.
        .route("/uploads/{id}/{name}", get(downloads::read_named))
        .nest(
            "/api",
            rest::router().layer(axum::middleware::from_fn_with_state(app.clone(), rate_limits::limit)),
        )
        .merge(ably::router())
        .fallback(rest::not_found)
        .method_not_allowed_fallback(rest::method_not_allowed)
        .layer(axum::middleware::from_fn_with_state(app.clone(), trace::trace))
        .with_state(app)
}

async fn accept(app: Arc<App>, listener: TcpListener, mut stopped: watch::Receiver<bool>) {
    let router = router(app.clone());
    let tls = app.tls.clone();
    let mut certificate_check = tokio::time::interval(CERTIFICATE_CHECK_INTERVAL);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            _ = certificate_check.tick(), if tls.is_some() => {
                let tls = tls.clone();
                connections.spawn_blocking(move || {
                    if let Some(tls) = tls {
                        tls.reload_if_changed();
                    }
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((tcp, peer)) => match app.connection_limiter.connection(peer.ip()) {
                    Ok(permit) => {
                        let serving = connection(tcp, peer, app.clone(), router.clone(), stopped.clone());
                        connections.spawn(async move {
                            serving.await;
                            drop(permit);
                        });
                    }
                    // Closed without a response: a client with that many connections does not wait for one.
                    Err(_) => app.http_metrics.count_rejected_connection(),
                },
                // Most likely out of file descriptors: retry after a pause, when other connections may have
                // ended.
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    app.hub.end_sessions();
    app.open_sockets.begin_stop();
    let drained = async {
        while connections.join_next().await.is_some() {}
        app.tasks.ended().await;
    };
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, drained).await;
    connections.shutdown().await;
    app.tasks.abort().await;
}

async fn connection(
    tcp: TcpStream,
    peer: SocketAddr,
    app: Arc<App>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = tcp.set_nodelay(true);
    // Detects a peer whose network failed: the connection ends after two minutes without a reply.
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15))
        .with_retries(4);
    let _ = SockRef::from(&tcp).set_tcp_keepalive(&keepalive);
    let stream = match &app.tls {
        None => Some(Stream::Plain(tcp)),
        Some(tls) => tokio::select! {
            stream = tls.accept_tls(tcp) => stream,
            _ = stopped.changed() => None,
        },
    };
    let Some(stream) = stream else { return };
    let service = router.map_request(move |mut request: Request<Incoming>| {
        let address = forwarded::client(peer.ip(), request.headers(), &app.config.trusted_proxies);
        request.extensions_mut().insert(Peer(SocketAddr::new(address, peer.port())));
        request.map(axum::body::Body::new)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(64 * 1024)
        .serve_connection(
            TokioIo::new(WriteTimeoutStream::new(stream, WRITE_TIMEOUT)),
            TowerToHyperService::new(service),
        )
        .with_upgrades();
    tokio::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            _ = &mut connection => return,
            _ = stopped.changed(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
