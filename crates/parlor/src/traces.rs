//! Traces for an OpenTelemetry collector: what was asked, by which route, and how long each part took.
//!
//! Spans go out, events of the log do not. What waits for the collector is bounded, and one that is not there costs
//! nothing but its traces.

use anyhow::Context;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::time::Duration;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, LevelFilter};
use tracing_subscriber::registry::LookupSpan;
use url::Url;

const WITHIN: Duration = Duration::from_secs(5);

/// Whoever sends them.
pub struct Traces(SdkTracerProvider);

pub fn start<S>(endpoint: &Url) -> anyhow::Result<(Box<dyn Layer<S> + Send + Sync>, Traces)>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let address = match endpoint.path() {
        "/" => endpoint.join("v1/traces").context("otlp_endpoint")?,
        _ => endpoint.clone(),
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(address)
        .with_timeout(WITHIN)
        .build()
        .context("cannot send traces")?;
    let resource = Resource::builder_empty()
        .with_service_name("parlor")
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let ours = FilterFn::new(|about| about.is_span() && about.target().starts_with("parlor"));
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("parlor"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(ours.with_max_level_hint(LevelFilter::DEBUG));
    Ok((Box::new(layer), Traces(provider)))
}

impl Traces {
    /// Sends what is left.
    pub async fn finish(self) {
        let sent = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(WITHIN)).await;
        if !matches!(sent, Ok(Ok(()))) {
            tracing::warn!("the last traces could not be sent");
        }
    }
}
