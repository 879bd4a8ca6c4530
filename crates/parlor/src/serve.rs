//! Composition of the hub: starts all its parts and runs it until a signal stops it.

use crate::admin_executor::AdminExecutor;
use crate::agents::local::{self, LocalAgents};
use crate::agents::tool_programs::LocalPrograms;
use crate::agents::{folders, services};
use crate::backup::LastBackup;
use crate::chatmd::configured;
use crate::chatmd::hosted::HostedBridges;
use crate::control::ControlSocket;
use crate::guide;
use crate::instance::{self, Instance, Platform};
use crate::log;
use crate::report::{self, SetupLink, StartupReport};
use crate::secret::Secret;
use crate::settings::Settings;
use crate::style::TerminalStyle;
use anyhow::Context;
use parlor_engine::feed::OutboxLimits;
use parlor_engine::ports::NoFolders;
use parlor_engine::{Hub, blob_gc};
use parlor_folders::{Options, Synchroniser};
use parlor_model::Caller;
use parlor_model::command::OfferSetup;
use parlor_model::query::NeedsSetup;
use parlor_server::{AblyLimits, App, Config, Models, RunningServer, Tls, secrets};
use parlor_wire::agentim::gateway::ingress::MAX_CHUNKS;
use parlor_wire::agentim::ingress::FrameLimits;
use parlor_wire::json::JsonLimits;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Starts the hub, prints the start-up report, and serves until SIGTERM or SIGINT. SIGHUP reopens the log
/// file and reloads the certificate.
pub async fn serve(settings: Settings, config: Option<PathBuf>) -> anyhow::Result<()> {
    parlor_agents::process::enable_supervisor();
    let log = log::start(&settings)?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot wait for signals")?;
    let mut hub = RunningHub::start(&settings, config.as_deref(), Platform::default()).await?;
    let facts = StartupReport::new(&settings, hub.address(), hub.setup.take());
    // The hub serves even if standard output is closed.
    let _ =
        std::io::stdout().lock().write_all(report::render(&facts, TerminalStyle::for_stdout()).as_bytes());

    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => {
                log.reopen();
                hub.reload_certificate();
            }
        }
    }
    tracing::info!("shutting down");
    hub.stop().await;
    log.finish().await;
    Ok(())
}

/// A hub with its listeners and background tasks. [`serve`] runs one per process; tests run several in
/// theirs.
///
/// Dropping it aborts the background tasks, and the listener ends with the runtime; [`RunningHub::stop`]
/// shuts down gracefully.
pub struct RunningHub {
    listening: Option<RunningServer>,
    /// Setup link for the first admin; present until an admin exists.
    pub setup: Option<SetupLink>,
    tls: Option<Arc<Tls>>,
    stop_control: Option<oneshot::Sender<()>>,
    control: JoinHandle<()>,
    /// Stops the janitor and the hosting tasks.
    stop: watch::Sender<bool>,
    janitor: JoinHandle<()>,
    /// The guide, the hub's own agents, its service agents and the agents root.
    hosting: Vec<JoinHandle<()>>,
    bridges: HostedBridges,
    instance: Instance,
}

impl RunningHub {
    /// Opens the store, starts the engine, the background tasks and the listeners.
    pub async fn start(
        settings: &Settings,
        config: Option<&Path>,
        platform: Platform,
    ) -> anyhow::Result<Self> {
        // Before the store is opened: a wrong certificate must leave the data directory as it was.
        let tls = match (&settings.tls_cert, &settings.tls_key) {
            (Some(certificate), Some(key)) => {
                Some(Tls::load(certificate, key).context("cannot load the TLS certificate")?)
            }
            _ => None,
        };
        // Also before: a second hub on one agents root must not open its own store.
        let folders = settings
            .agents_root
            .clone()
            .map(|root| Synchroniser::open(Options { root, data: settings.data.clone() }));
        let folders = folders.transpose().context("cannot use the agents root")?;
        let close_timeout = platform.close_timeout;
        let instance = instance::open(settings, platform)?;
        let local_agents = Arc::new(LocalAgents::open(&settings.data, config)?);
        let chat_files = config.map(configured::read).transpose()?.unwrap_or_default();
        let listener = TcpListener::bind(settings.listen).await;
        let listener = listener.with_context(|| format!("cannot listen on {}", settings.listen))?;
        let address = listener.local_addr().context("the listener has no address")?;
        let app = App::new(
            instance.hub.clone(),
            instance.blobs.clone(),
            instance.passwords.clone(),
            Config {
                folders: match &folders {
                    Some((synchroniser, _)) => synchroniser.folders(),
                    None => Arc::new(NoFolders),
                },
                ..server_config(settings, instance.models.clone(), close_timeout, address)?
            },
            tls.clone(),
        );
        let setup = first_admin(&instance, &local_agents, settings).await?;

        let control = ControlSocket::bind(&settings.data).context("cannot open the control socket")?;
        let executor = AdminExecutor::new(&instance, local_agents.clone(), true);
        let (stop_control, control_stopped) = oneshot::channel::<()>();
        let control = tokio::spawn(control.serve(
            move |request| {
                let executor = executor.clone();
                async move { executor.perform(request).await }
            },
            async { control_stopped.await.unwrap_or_default() },
        ));
        let stop = watch::Sender::new(false);
        let guide = tokio::spawn(guide::run_loop(app.clone(), stop.subscribe()));
        let agents = tokio::spawn(local::run_loop(app.clone(), local_agents.clone(), stop.subscribe()));
        let folders = folders.map(|(synchroniser, moves)| {
            local_agents.accept_moves(moves);
            let (hub, owner) = (instance.hub.clone(), settings.agents_owner.clone());
            tokio::spawn(folders::run_loop(hub, synchroniser, local_agents, owner, stop.subscribe()))
        });
        let services = tokio::spawn({
            let (app, models, data) = (app.clone(), instance.models.clone(), settings.data.clone());
            let stop = stop.subscribe();
            async move { services::run_loop(app, models, &data, stop).await }
        });
        let janitor = blob_gc::run(instance.hub.clone(), instance.blobs.clone(), stop.subscribe());
        let janitor = tokio::spawn(janitor);
        let public_url = settings.public_url.as_ref().map(|url| url.as_str()).unwrap_or_default();
        let bridges = HostedBridges::start(&instance.hub, chat_files, public_url);
        let listening = Some(parlor_server::serve(app, listener).context("cannot listen")?);
        let hosting = [guide, agents, services].into_iter().chain(folders).collect();
        Ok(Self {
            listening,
            setup,
            tls,
            stop_control: Some(stop_control),
            control,
            stop,
            janitor,
            hosting,
            bridges,
            instance,
        })
    }

    /// Returns the bound address of the listener, with the actual port if the setting is port 0.
    pub fn address(&self) -> SocketAddr {
        self.listening.as_ref().expect("only `stop` takes the listener").address
    }

    pub fn engine(&self) -> Hub {
        self.instance.hub.clone()
    }

    /// Reloads the TLS certificate if its files changed.
    pub fn reload_certificate(&self) {
        if let Some(tls) = &self.tls {
            tls.reload_if_changed();
        }
    }

    /// Shuts down gracefully: closes every connection with a close frame, ends the programs of the hub's
    /// agents, finishes submitted commands, and closes the store.
    pub async fn stop(mut self) {
        // Before their connections are closed, so that they can wait for the answers to the lines they sent.
        self.bridges.begin_stop();
        if let Some(listening) = self.listening.take() {
            listening.stop().await;
        }
        if let Some(stop) = self.stop_control.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.control).await;
        // The hosting tasks also wait for the end of the agent programs that they started.
        self.stop.send_replace(true);
        for task in std::iter::once(&mut self.janitor).chain(&mut self.hosting) {
            let _ = task.await;
        }
        self.bridges.stopped().await;
        self.instance.passwords.end().await;
        self.instance.hub.close().await;
    }
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        self.control.abort();
        self.janitor.abort();
        self.hosting.iter().for_each(JoinHandle::abort);
    }
}

/// If there is no admin, creates the first admin from the settings, or returns a setup link if no password is
/// set.
async fn first_admin(
    instance: &Instance,
    local_agents: &Arc<LocalAgents>,
    settings: &Settings,
) -> anyhow::Result<Option<SetupLink>> {
    let refused = |_| anyhow::anyhow!("cannot write to the store");
    if !instance.hub.read(&Caller::OPERATOR, NeedsSetup).await.map_err(refused)? {
        return Ok(None);
    }
    if let Some(password) = &settings.admin_password {
        AdminExecutor::new(instance, local_agents.clone(), false)
            .create_admin(&settings.admin_user, password)
            .await?;
        return Ok(None);
    }
    let token = secrets::setup_token();
    let expires_at = instance.hub.now().plus(settings.setup_link_ttl);
    let offer = OfferSetup { token: secrets::hash(&token), expires_at };
    instance.hub.execute(&Caller::OPERATOR, offer).await.map_err(refused)?;
    Ok(Some(SetupLink { token: Secret::new(token), lifetime: settings.setup_link_ttl }))
}

/// Base URL of the hub for programs on the same machine. With a certificate it has the name in the public URL, because
/// the certificate is not valid for an address.
fn local_url(settings: &Settings, address: SocketAddr) -> String {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let local = SocketAddr::new(ip, address.port());
    match (&settings.tls_cert, &settings.public_url) {
        (Some(_), Some(public)) => public.as_str().trim_end_matches('/').to_owned(),
        (Some(_), None) => format!("https://localhost:{}", address.port()),
        (None, _) => format!("http://{local}"),
    }
}

fn server_config(
    settings: &Settings,
    models: Arc<dyn Models>,
    close_timeout: Duration,
    address: SocketAddr,
) -> anyhow::Result<Config> {
    let limits = settings.limits_in_force();
    let mut allowed_origins = settings.allowed_origins.clone();
    allowed_origins.extend(settings.public_origin());
    let mut allowed_hosts = settings.allowed_hosts.clone();
    let public = settings.public_url.as_ref();
    allowed_hosts.extend(public.and_then(|url| url.host_str()).map(str::to_owned));
    Ok(Config {
        token_secret: instance::token_secret(settings)?,
        access_token_ttl: settings.access_token_ttl,
        refresh_token_ttl: settings.refresh_token_ttl,
        refresh_grace: settings.refresh_grace_seconds,
        lockout_failures: settings.lockout_failures,
        lockout: settings.lockout_seconds,
        auth_timeout: settings.auth_timeout,
        heartbeat: settings.heartbeat,
        close_timeout,
        login_per_minute: limits.logins,
        refresh_per_minute: limits.refreshes,
        requests_per_minute: limits.requests,
        passwords_per_minute: limits.passwords,
        searches_per_minute: limits.searches,
        uploads_per_minute: limits.uploads,
        router_tests_per_minute: limits.router_tests,
        client_window: settings.client_rate_limit_window,
        client_max: limits.frames,
        connections_per_user: limits.sockets_per_user,
        connections_total: limits.sockets,
        unauthenticated_per_address: limits.unauthenticated_per_address,
        connections_per_address: limits.connections_per_address,
        trusted_proxies: settings.trusted_proxies.clone(),
        frames: FrameLimits {
            bytes: settings.max_ws_message_size,
            json: JsonLimits { depth: settings.max_json_depth, items: 1000 },
        },
        ably: AblyLimits {
            message_bytes: settings.max_ably_message_size,
            frames: limits.ably_frames,
            channels: settings.max_ably_channels,
        },
        gateway_frames: FrameLimits {
            bytes: settings.max_gateway_message_size,
            json: JsonLimits { depth: settings.max_json_depth, items: MAX_CHUNKS },
        },
        outbox: OutboxLimits { bytes: settings.outbox_max_bytes, buffers: settings.outbox_max_frames },
        allowed_origins,
        allowed_hosts,
        public_url: public.map(|url| url.as_str().trim_end_matches('/').to_owned()),
        secure_cookies: settings.is_reached_over_tls(),
        upload_bytes: settings.max_upload_size as u64,
        avatar_bytes: settings.max_avatar_size as u64,
        limits: settings.limits_for_admins(),
        last_backup: Arc::new({
            let data = settings.data.clone();
            move || LastBackup::read(&data).map(|last| last.at)
        }),
        models,
        folders: Arc::new(NoFolders),
        tools: Arc::new(LocalPrograms),
        local_url: local_url(settings, address),
    })
}
