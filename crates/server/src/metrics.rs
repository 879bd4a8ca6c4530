//! `/metrics`: metrics of the hub in the Prometheus text format.
//!
//! No label contains a value that clients choose. Access requires a loopback connection without a proxy, or a
//! caller with the permission to read metrics.

use crate::App;
use crate::auth::origin;
use crate::http::problem::Problem;
use crate::http::{Authenticated, Peer};
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, Version};
use parking_lot::Mutex;
use parlor_engine::Health;
use parlor_engine::metrics::{HISTOGRAM_BOUNDS_MICROS, Histogram, HubMetrics};
use parlor_model::query::MayReadMetrics;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub struct HttpMetrics {
    started: SystemTime,
    routes: Mutex<BTreeMap<Box<str>, BTreeMap<&'static str, Route>>>,
    rejected_connections: AtomicU64,
}

#[derive(Default)]
struct Route {
    times: Histogram,
    statuses: BTreeMap<u16, u64>,
}

/// Method and route pattern of a request as metric labels; both come from a fixed set of values.
pub struct RouteLabel {
    method: &'static str,
    route: Option<MatchedPath>,
}

impl RouteLabel {
    pub fn of(request: &Request) -> Self {
        const KNOWN: [Method; 7] = [
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::HEAD,
            Method::PATCH,
            Method::OPTIONS,
        ];
        const NAMES: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS"];
        let index = KNOWN.iter().position(|method| method == request.method());
        let route = request.extensions().get::<MatchedPath>().cloned();
        Self { method: index.map_or("other", |index| NAMES[index]), route }
    }

    pub fn method(&self) -> &'static str {
        self.method
    }

    pub fn route(&self) -> &str {
        self.route.as_ref().map_or("none", MatchedPath::as_str)
    }
}

impl HttpMetrics {
    pub fn new() -> Self {
        Self { started: SystemTime::now(), routes: Mutex::default(), rejected_connections: AtomicU64::new(0) }
    }

    /// Counts a connection that was closed because its address had too many.
    pub fn count_rejected_connection(&self) {
        self.rejected_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_response(&self, label: &RouteLabel, status: u16, time: Duration) {
        let mut routes = self.routes.lock();
        let methods = match routes.get_mut(label.route()) {
            Some(methods) => methods,
            None => routes.entry(label.route().into()).or_default(),
        };
        let route = methods.entry(label.method).or_default();
        route.times.observe(time);
        *route.statuses.entry(status).or_default() += 1;
    }
}

pub async fn metrics(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
    let is_local = peer.0.ip().to_canonical().is_loopback()
        // Proxies use HTTP/1.0 by default, and then may not add headers that reveal them.
        && parts.version >= Version::HTTP_11
        && !has_proxy_headers(&parts.headers)
        && origin::is_allowed(&parts.headers, &app.config);
    if !is_local {
        let Authenticated(caller) = Authenticated::from_request_parts(&mut parts, &app).await?;
        app.hub.may(&caller, MayReadMetrics).await?;
    }
    let text = render(&app, &app.hub.metrics());
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

fn has_proxy_headers(headers: &HeaderMap) -> bool {
    let proxy_headers =
        ["forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"];
    headers
        .keys()
        .any(|name| name.as_str().starts_with("x-forwarded") || proxy_headers.contains(&name.as_str()))
}

fn render(app: &App, hub_metrics: &HubMetrics) -> String {
    let mut page = MetricsPage::default();
    let writer_metrics = &hub_metrics.tally;
    page.metric("parlor_info", "gauge", "Version of Parlor.", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let healthy = u8::from(hub_metrics.health == Health::Good);
    page.metric("parlor_healthy", "gauge", "Whether the store accepts writes (1) or not (0).", &[], healthy);
    page.header("parlor_commands_total", "counter", "Commands by outcome.");
    for (outcome, count) in [
        ("done", &writer_metrics.done),
        ("refused", &writer_metrics.refused),
        ("failed", &writer_metrics.failed),
    ] {
        page.sample("parlor_commands_total", &[("outcome", outcome)], count.load(Ordering::Relaxed));
    }
    let counts = [
        ("parlor_commands_waiting", "Commands queued for the writer.", hub_metrics.waiting_commands),
        (
            "parlor_commands_waiting_max",
            "Maximum commands queued for the writer.",
            hub_metrics.most_waiting_commands,
        ),
        ("parlor_reads_running", "Reads in progress.", hub_metrics.reads),
        ("parlor_reads_running_max", "Maximum concurrent reads.", hub_metrics.most_reads),
        ("parlor_connections", "Open HTTP connections, without WebSockets.", app.connection_limiter.open()),
        ("parlor_passwords_waiting", "Password hashes that run or wait.", app.passwords.waiting()),
    ];
    for (name, help, count) in counts {
        page.metric(name, "gauge", help, &[], count);
    }
    let sizes = [
        (
            "parlor_head_seq",
            "Sequence number of the newest committed event.",
            writer_metrics.head.load(Ordering::Relaxed),
        ),
        ("parlor_told_seq", "Sequence number of the newest published event.", hub_metrics.told.0),
        ("parlor_database_bytes", "Size of the database in bytes.", hub_metrics.size.database),
        ("parlor_journal_bytes", "Size of the write-ahead log in bytes.", hub_metrics.size.journal),
    ];
    for (name, help, size) in sizes {
        page.metric(name, "gauge", help, &[], size);
    }
    page.header("parlor_store_reads_total", "counter", "Reads of the database by the writer.");
    page.sample("parlor_store_reads_total", &[], writer_metrics.store_reads.load(Ordering::Relaxed));
    page.header("parlor_commit_seconds", "histogram", "Time to decide and commit a batch of commands.");
    page.histogram("parlor_commit_seconds", &[], &writer_metrics.commits);
    page.header("parlor_answer_seconds", "histogram", "Time from a command to its receipt.");
    page.histogram("parlor_answer_seconds", &[], &writer_metrics.answers);
    page.header("parlor_sockets", "gauge", "Open WebSockets and event streams by endpoint.");
    for (endpoint, count) in app.open_sockets.by_endpoint() {
        page.sample("parlor_sockets", &[("endpoint", &endpoint)], count);
    }
    let rejected_connections = app.http_metrics.rejected_connections.load(Ordering::Relaxed);
    let help = "Connections closed because their address had too many.";
    page.metric("parlor_connections_turned_away_total", "counter", help, &[], rejected_connections);
    requests(&mut page, &app.http_metrics);
    if let Some(expires) = app.tls.as_ref().and_then(|tls| tls.expires_at()) {
        let help = "Unix time at which the certificate expires.";
        page.metric("parlor_tls_expiry_timestamp_seconds", "gauge", help, &[], seconds(expires));
    }
    if let Some(made) = (app.config.last_backup)() {
        let help = "Unix time of the last backup.";
        page.metric("parlor_last_backup_timestamp_seconds", "gauge", help, &[], made);
    }
    process(&mut page, &app.http_metrics);
    page.0
}

fn requests(page: &mut MetricsPage, http_metrics: &HttpMetrics) {
    let routes = http_metrics.routes.lock();
    let all = || {
        let methods = |(route, methods)| std::iter::repeat(route).zip::<&BTreeMap<_, _>>(methods);
        routes.iter().flat_map(methods)
    };
    page.header("parlor_http_requests_total", "counter", "HTTP responses by method, route and status.");
    for (route, (method, found)) in all() {
        for (status, count) in &found.statuses {
            let labels = [("method", *method), ("route", route), ("status", &status.to_string())];
            page.sample("parlor_http_requests_total", &labels, count);
        }
    }
    page.header("parlor_http_request_seconds", "histogram", "Time from a request to its response.");
    for (route, (method, found)) in all() {
        page.histogram("parlor_http_request_seconds", &[("method", method), ("route", route)], &found.times);
    }
}

/// Adds metrics of this process, as far as the operating system provides them (Linux).
fn process(page: &mut MetricsPage, http_metrics: &HttpMetrics) {
    page.metric(
        "process_start_time_seconds",
        "gauge",
        "Unix time at which the process started.",
        &[],
        seconds(http_metrics.started),
    );
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        page.metric("process_open_fds", "gauge", "Open file descriptors.", &[], files.count());
    }
    if let Some(max) = field("/proc/self/limits", "Max open files") {
        page.metric("process_max_fds", "gauge", "Maximum open file descriptors.", &[], max);
    }
    if let Some(kilobytes) = field("/proc/self/status", "VmRSS:") {
        page.metric(
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory in bytes.",
            &[],
            kilobytes * 1024,
        );
    }
}

/// First number after a field name in a file of `/proc`.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Page in the Prometheus text format.
#[derive(Default)]
struct MetricsPage(String);

type Labels<'a> = [(&'static str, &'a str)];

impl MetricsPage {
    fn header(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn metric(&mut self, name: &str, kind: &str, help: &str, labels: &Labels<'_>, value: impl Display) {
        self.header(name, kind, help);
        self.sample(name, labels, value);
    }

    /// Writes one sample. Label values are not escaped, as they come from a fixed set without special
    /// characters.
    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn histogram(&mut self, name: &str, labels: &Labels<'_>, histogram: &Histogram) {
        let counts = histogram.cumulated();
        let ends = HISTOGRAM_BOUNDS_MICROS
            .iter()
            .map(|micros| (*micros as f64 / 1e6).to_string())
            .chain(["+Inf".into()]);
        for (end, count) in ends.zip(counts) {
            self.sample(&format!("{name}_bucket"), &[labels, &[("le", &end)]].concat(), count);
        }
        self.sample(&format!("{name}_sum"), labels, histogram.seconds());
        self.sample(&format!("{name}_count"), labels, counts[HISTOGRAM_BOUNDS_MICROS.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_written_in_the_prometheus_format() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_millis(2));
        let mut page = MetricsPage::default();
        page.histogram("x", &[("route", "/a")], &histogram);
        let lines: Vec<&str> = page.0.lines().collect();
        assert_eq!(lines[0], "x_bucket{route=\"/a\",le=\"0.00025\"} 0");
        assert_eq!(lines[3], "x_bucket{route=\"/a\",le=\"0.0025\"} 1");
        assert_eq!(
            lines[14..],
            ["x_bucket{route=\"/a\",le=\"+Inf\"} 1", "x_sum{route=\"/a\"} 0.002", "x_count{route=\"/a\"} 1"]
        );
    }
}
