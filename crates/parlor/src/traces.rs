//! Traces for an OpenTelemetry collector: what was asked, by which route, and how long each part took.
//!
//! Spans go out, events of the log do not. The queue of spans is bounded, and a collector that cannot be reached costs
//! nothing but its traces. The export is OTLP over HTTP with protobuf bodies, written here: the OpenTelemetry crates and
//! their HTTP client would be a tenth of the build.

mod protobuf;
mod recorder;

use anyhow::Context;
use parlor_agents::outbound::{self, AddressPolicy, Client};
use recorder::{Recorder, Span};
use std::env;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::registry::LookupSpan;
use url::Url;

/// Finished spans that wait for the exporter; further ones are dropped.
const QUEUE: usize = 2048;
/// Spans of one request to the collector.
const BATCH: usize = 512;
/// How long a span waits for others at most.
const DELAY: Duration = Duration::from_secs(5);
/// For one request to the collector.
const WITHIN: Duration = Duration::from_secs(5);

/// The running exporter.
pub struct Traces {
    stop: oneshot::Sender<()>,
    exporter: JoinHandle<bool>,
}

/// Starts the exporter, and returns the layer that records spans for it. Needs a tokio runtime.
pub fn start<S>(endpoint: &Url) -> anyhow::Result<(Box<dyn Layer<S> + Send + Sync>, Traces)>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let address = match endpoint.path() {
        "/" => endpoint.join("v1/traces").context("otlp_endpoint")?,
        _ => endpoint.clone(),
    };
    let collector =
        Collector { client: outbound::client(AddressPolicy::Everywhere), address, headers: headers() };
    let (finished, queue) = mpsc::channel(QUEUE);
    let (stop, stopped) = oneshot::channel();
    let exporter = tokio::spawn(export(collector, queue, stopped));
    let ours = FilterFn::new(|about| about.is_span() && about.target().starts_with("parlor"));
    let layer = Recorder::new(finished).with_filter(ours.with_max_level_hint(LevelFilter::DEBUG));
    Ok((Box::new(layer), Traces { stop, exporter }))
}

impl Traces {
    /// Sends what is left.
    pub async fn finish(self) {
        let _ = self.stop.send(());
        if !matches!(timeout(WITHIN, self.exporter).await, Ok(Ok(true))) {
            tracing::warn!("the last traces could not be sent");
        }
    }
}

struct Collector {
    client: Client,
    address: Url,
    headers: Vec<(String, String)>,
}

impl Collector {
    /// Whether the collector took them. Those that it did not take are lost.
    async fn take(&self, spans: &[Span]) -> bool {
        let request = self.client.post(self.address.clone()).timeout(WITHIN);
        let request = request.header("content-type", "application/x-protobuf");
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let sent = request.body(protobuf::export_request(spans)).send().await;
        sent.is_ok_and(|answer| answer.status().is_success())
    }
}

/// Headers that OpenTelemetry's own variables name, such as the credentials of a hosted collector.
fn headers() -> Vec<(String, String)> {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
    let listed = variables.into_iter().find_map(|name| env::var(name).ok()).unwrap_or_default();
    parse_headers(&listed)
}

/// Of the form `name=value,name=value`, with values in percent-encoding.
fn parse_headers(listed: &str) -> Vec<(String, String)> {
    let pairs = listed.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = pairs.map(|(name, value)| {
        // A form would read a plus sign as a space; these values do not.
        let value = format!("v={}", value.trim().replace('+', "%2B"));
        let value = url::form_urlencoded::parse(value.as_bytes()).next().map(|(_, value)| value.into_owned());
        (name.trim().to_owned(), value.unwrap_or_default())
    });
    decoded.filter(|(name, _)| !name.is_empty()).collect()
}

/// Sends batches until it is stopped; then what is queued. Returns whether the last request succeeded.
async fn export(
    collector: Collector,
    mut queue: mpsc::Receiver<Span>,
    mut stopped: oneshot::Receiver<()>,
) -> bool {
    let mut batch = Vec::with_capacity(BATCH);
    let mut is_sent = true;
    loop {
        let until = Instant::now() + DELAY;
        let mut is_over = false;
        while batch.len() < BATCH && !is_over {
            let room = BATCH - batch.len();
            let received = tokio::select! {
                received = timeout_at(until, queue.recv_many(&mut batch, room)) => received,
                _ = &mut stopped, if !queue.is_closed() => {
                    queue.close();
                    continue;
                }
            };
            match received {
                Ok(0) => is_over = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if !batch.is_empty() {
            is_sent = collector.take(&batch).await;
            batch.clear();
        }
        if is_over {
            return is_sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let check = |listed: &str, expected: &[(&str, &str)]| {
            let read = parse_headers(listed);
            let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(read, expected, "{listed}");
        };
        check("", &[]);
        check("api-key=a+b", &[("api-key", "a+b")]);
        check(
            " authorization = Basic%20YTpi= , x-team=one%2Ctwo",
            &[("authorization", "Basic YTpi="), ("x-team", "one,two")],
        );
        check("nothing,=value", &[]);
    }
}
