//! `/metrics`: how the hub is doing, in numbers, as Prometheus reads them.
//!
//! Owns: no label carries anything that others chose. To read it one is on this machine, with no proxy between, or
//! has a key for it.

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
use parlor_model::Query;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub struct HttpMetrics {
    started: SystemTime,
    routes: Mutex<BTreeMap<Box<str>, BTreeMap<&'static str, Route>>>,
    turned_away: AtomicU64,
}

#[derive(Default)]
struct Route {
    times: Histogram,
    statuses: BTreeMap<u16, u64>,
}

/// What of a request is counted: both are of a closed list.
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
        let known = KNOWN.iter().position(|method| method == request.method());
        let route = request.extensions().get::<MatchedPath>().cloned();
        Self { method: known.map_or("other", |place| NAMES[place]), route }
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
        Self { started: SystemTime::now(), routes: Mutex::default(), turned_away: AtomicU64::new(0) }
    }

    /// A connection of an address that had too many.
    pub fn count_rejected_connection(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub fn answered(&self, asked: &RouteLabel, status: u16, time: Duration) {
        let mut routes = self.routes.lock();
        let methods = match routes.get_mut(asked.route()) {
            Some(methods) => methods,
            None => routes.entry(asked.route().into()).or_default(),
        };
        let route = methods.entry(asked.method).or_default();
        route.times.observe(time);
        *route.statuses.entry(status).or_default() += 1;
    }
}

pub async fn metrics(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let peer = parts.extensions.get::<Peer>().copied().unwrap_or_default();
    let nearby = peer.0.ip().to_canonical().is_loopback()
        // Proxies speak the old version unless told otherwise, and then say nothing of whom they speak for.
        && parts.version >= Version::HTTP_11
        && !came_through_a_proxy(&parts.headers)
        && origin::is_allowed(&parts.headers, &app.config);
    if !nearby {
        let Authenticated(caller) = Authenticated::from_request_parts(&mut parts, &app).await?;
        app.hub.may(&caller, Query::MayReadMetrics).await?;
    }
    let text = render(&app, &app.hub.metrics());
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

fn came_through_a_proxy(headers: &HeaderMap) -> bool {
    let telling = ["forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip"];
    headers.keys().any(|name| name.as_str().starts_with("x-forwarded") || telling.contains(&name.as_str()))
}

fn render(app: &App, hub_metrics: &HubMetrics) -> String {
    let mut page = MetricsPage::default();
    let writer_metrics = &hub_metrics.tally;
    page.one("parlor_info", "gauge", "Which version runs.", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let healthy = u8::from(hub_metrics.health == Health::Good);
    page.one("parlor_healthy", "gauge", "Whether what is said can be kept.", &[], healthy);
    page.about("parlor_commands_total", "counter", "Commands by what came of them.");
    for (outcome, count) in [
        ("done", &writer_metrics.done),
        ("refused", &writer_metrics.refused),
        ("failed", &writer_metrics.failed),
    ] {
        page.sample("parlor_commands_total", &[("outcome", outcome)], count.load(Ordering::Relaxed));
    }
    let counts = [
        ("parlor_commands_waiting", "Commands that wait for the writer.", hub_metrics.waiting_commands),
        ("parlor_commands_waiting_max", "How many may wait.", hub_metrics.most_waiting_commands),
        ("parlor_reads_running", "Reads under way.", hub_metrics.reads),
        ("parlor_reads_running_max", "How many reads run at once.", hub_metrics.most_reads),
        ("parlor_connections", "Open connections that are no WebSockets.", app.connection_limiter.open()),
        ("parlor_passwords_waiting", "Passwords that are hashed or wait for it.", app.passwords.waiting()),
    ];
    for (name, help, count) in counts {
        page.one(name, "gauge", help, &[], count);
    }
    let sizes = [
        ("parlor_head_seq", "The newest event that is kept.", writer_metrics.head.load(Ordering::Relaxed)),
        ("parlor_told_seq", "The newest event that was told to those connected.", hub_metrics.told.0),
        ("parlor_database_bytes", "The size of the database.", hub_metrics.size.database),
        ("parlor_journal_bytes", "The size of its write-ahead log.", hub_metrics.size.journal),
    ];
    for (name, help, size) in sizes {
        page.one(name, "gauge", help, &[], size);
    }
    page.about("parlor_commit_seconds", "histogram", "Deciding a group of commands and having it on disk.");
    page.histogram("parlor_commit_seconds", &[], &writer_metrics.commits);
    page.about("parlor_answer_seconds", "histogram", "From a command to its outcome.");
    page.histogram("parlor_answer_seconds", &[], &writer_metrics.answers);
    page.about("parlor_sockets", "gauge", "Open WebSockets by door.");
    for (door, count) in app.open_sockets.by_endpoint() {
        page.sample("parlor_sockets", &[("door", &door)], count);
    }
    let turned_away = app.http_metrics.turned_away.load(Ordering::Relaxed);
    let help = "Connections of addresses that had too many.";
    page.one("parlor_connections_turned_away_total", "counter", help, &[], turned_away);
    requests(&mut page, &app.http_metrics);
    if let Some(expires) = app.tls.as_ref().and_then(|tls| tls.expires_at()) {
        let help = "When the certificate runs out.";
        page.one("parlor_tls_expiry_timestamp_seconds", "gauge", help, &[], seconds(expires));
    }
    if let Some(made) = (app.config.last_backup)() {
        let help = "When the last backup was made.";
        page.one("parlor_last_backup_timestamp_seconds", "gauge", help, &[], made);
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
    page.about("parlor_http_requests_total", "counter", "Answered requests.");
    for (route, (method, found)) in all() {
        for (status, count) in &found.statuses {
            let labels = [("method", *method), ("route", route), ("status", &status.to_string())];
            page.sample("parlor_http_requests_total", &labels, count);
        }
    }
    page.about("parlor_http_request_seconds", "histogram", "From a request to its answer.");
    for (route, (method, found)) in all() {
        page.histogram("parlor_http_request_seconds", &[("method", method), ("route", route)], &found.times);
    }
}

/// What the operating system says of this process, where it can be asked.
fn process(page: &mut MetricsPage, http_metrics: &HttpMetrics) {
    page.one(
        "process_start_time_seconds",
        "gauge",
        "When Parlor started.",
        &[],
        seconds(http_metrics.started),
    );
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        page.one("process_open_fds", "gauge", "Open files and connections.", &[], files.count());
    }
    if let Some(most) = field("/proc/self/limits", "Max open files") {
        page.one("process_max_fds", "gauge", "How many may be open.", &[], most);
    }
    if let Some(kilobytes) = field("/proc/self/status", "VmRSS:") {
        page.one("process_resident_memory_bytes", "gauge", "Memory in use.", &[], kilobytes * 1024);
    }
}

/// The first number after a name, in one of the system's lists.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Lines as Prometheus reads them.
#[derive(Default)]
struct MetricsPage(String);

type Labels<'a> = [(&'static str, &'a str)];

impl MetricsPage {
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, labels: &Labels<'_>, value: impl Display) {
        self.about(name, kind, help);
        self.sample(name, labels, value);
    }

    /// Values of labels are words of ours, with nothing to escape.
    fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{text}\"", if place == 0 { '{' } else { ',' });
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
    fn a_histogram_is_written_as_prometheus_reads_it() {
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
