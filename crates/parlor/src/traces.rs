//! Exports traces to an OpenTelemetry collector: requests by route, and the duration of each part.
//!
//! Exports spans only, no log events. The queue of spans is bounded; while the collector is unreachable,
//! spans are dropped and the hub is not slowed. The export is OTLP over HTTP with protobuf bodies,
//! implemented here because the OpenTelemetry crates and their HTTP client would be a tenth of the build.

mod protobuf;
mod recorder;

use anyhow::Context;
use parlor_outbound::{self as outbound, AddressPolicy, Client};
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

/// Maximum number of finished spans queued for the exporter; further spans are dropped.
const SPAN_QUEUE_CAPACITY: usize = 2048;
/// Maximum number of spans in one request to the collector.
const MAX_BATCH_SPANS: usize = 512;
/// Maximum time that a span waits for its batch to fill.
const MAX_BATCH_DELAY: Duration = Duration::from_secs(5);
/// Timeout for one request to the collector, and for the final export at shutdown.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The running exporter.
pub struct Traces {
    stop: oneshot::Sender<()>,
    exporter: JoinHandle<bool>,
}

/// Starts the exporter, and returns the layer that records spans for it. Must be called within a tokio
/// runtime.
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
    let (finished, queue) = mpsc::channel(SPAN_QUEUE_CAPACITY);
    let (stop, stopped) = oneshot::channel();
    let exporter = tokio::spawn(export(collector, queue, stopped));
    let own_spans = FilterFn::new(|about| about.is_span() && about.target().starts_with("parlor"));
    let layer = Recorder::new(finished).with_filter(own_spans.with_max_level_hint(LevelFilter::DEBUG));
    Ok((Box::new(layer), Traces { stop, exporter }))
}

impl Traces {
    /// Stops the exporter after it has sent the queued spans.
    pub async fn finish(self) {
        let _ = self.stop.send(());
        if !matches!(timeout(EXPORT_TIMEOUT, self.exporter).await, Ok(Ok(true))) {
            tracing::warn!("cannot send the last traces to the collector");
        }
    }
}

struct Collector {
    client: Client,
    address: Url,
    headers: Vec<(String, String)>,
}

impl Collector {
    /// Sends the spans and returns whether the collector accepted them. There is no retry.
    async fn send(&self, spans: &[Span]) -> bool {
        let request = self.client.post(self.address.clone()).timeout(EXPORT_TIMEOUT);
        let request = request.header("content-type", "application/x-protobuf");
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let sent = request.body(protobuf::export_request(spans)).send().await;
        sent.is_ok_and(|answer| answer.status().is_success())
    }
}

/// Reads request headers from the standard OpenTelemetry variables, such as the credentials of a hosted
/// collector.
fn headers() -> Vec<(String, String)> {
    let variables = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
    let listed = variables.into_iter().find_map(|name| env::var(name).ok()).unwrap_or_default();
    parse_headers(&listed)
}

/// Parses `name=value,name=value` with percent-encoded values.
fn parse_headers(listed: &str) -> Vec<(String, String)> {
    let pairs = listed.split(',').filter_map(|pair| pair.split_once('='));
    let decoded = pairs.map(|(name, value)| {
        // The form decoder reads a plus sign as a space, but in these values it is a plus sign.
        let value = format!("v={}", value.trim().replace('+', "%2B"));
        let value = url::form_urlencoded::parse(value.as_bytes()).next().map(|(_, value)| value.into_owned());
        (name.trim().to_owned(), value.unwrap_or_default())
    });
    decoded.filter(|(name, _)| !name.is_empty()).collect()
}

/// Sends batches until it is stopped, then the spans that are still queued. Returns whether the last request
/// succeeded.
async fn export(
    collector: Collector,
    mut queue: mpsc::Receiver<Span>,
    mut stopped: oneshot::Receiver<()>,
) -> bool {
    let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
    let mut is_sent = true;
    loop {
        let deadline = Instant::now() + MAX_BATCH_DELAY;
        let mut is_closed = false;
        while batch.len() < MAX_BATCH_SPANS && !is_closed {
            let free = MAX_BATCH_SPANS - batch.len();
            let received = tokio::select! {
                received = timeout_at(deadline, queue.recv_many(&mut batch, free)) => received,
                _ = &mut stopped, if !queue.is_closed() => {
                    queue.close();
                    continue;
                }
            };
            match received {
                Ok(0) => is_closed = true,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if !batch.is_empty() {
            is_sent = collector.send(&batch).await;
            batch.clear();
        }
        if is_closed {
            return is_sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_in_the_opentelemetry_format() {
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
