//! A tracing layer that records each finished span and queues it for the exporter.
//!
//! Owns: IDs, times and attributes of spans. Never blocks: if the queue is full, the span is dropped.

use std::fmt::Debug;
use std::time::SystemTime;
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

pub struct Span {
    pub trace: [u8; 16],
    pub id: [u8; 8],
    pub parent: Option<[u8; 8]>,
    pub name: String,
    pub kind: Kind,
    pub began: SystemTime,
    pub ended: SystemTime,
    pub attributes: Vec<(&'static str, Value)>,
}

/// Span kind; the discriminant is its number in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal = 1,
    Server = 2,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Bool(bool),
    Integer(i64),
    Float(f64),
}

pub struct Recorder {
    finished: mpsc::Sender<Span>,
}

impl Recorder {
    pub fn new(finished: mpsc::Sender<Span>) -> Self {
        Self { finished }
    }
}

impl<S> Layer<S> for Recorder
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(opened) = context.span(id) else { return };
        let parent = opened.parent();
        let parent = parent.as_ref().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<Span>().map(|parent| (parent.trace, parent.id))
        });
        let mut span = Span::new(attributes.metadata(), parent);
        attributes.record(&mut span);
        opened.extensions_mut().insert(span);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(opened) = context.span(id) else { return };
        if let Some(span) = opened.extensions_mut().get_mut::<Span>() {
            values.record(span);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(closed) = context.span(&id) else { return };
        let span = closed.extensions_mut().remove::<Span>();
        if let Some(span) = span {
            let _ = self.finished.try_send(Span { ended: SystemTime::now(), ..span });
        }
    }
}

impl Span {
    fn new(about: &Metadata<'_>, parent: Option<([u8; 16], [u8; 8])>) -> Self {
        let now = SystemTime::now();
        let (trace, parent) = match parent {
            Some((trace, parent)) => (trace, Some(parent)),
            None => (random(), None),
        };
        Self {
            trace,
            id: random(),
            parent,
            name: about.name().to_owned(),
            kind: Kind::Internal,
            began: now,
            ended: now,
            attributes: vec![("target", Value::Text(about.target().to_owned()))],
        }
    }

    /// Sets name or kind of the span from the fields `otel.name` and `otel.kind`, and an attribute from any
    /// other field.
    fn set(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("otel.name", Value::Text(name)) => self.name = name,
            ("otel.kind", Value::Text(kind)) if kind == "server" => self.kind = Kind::Server,
            (name, value) => self.attributes.push((name, value)),
        }
    }
}

impl Visit for Span {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Bool(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Value::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        // OTLP has no unsigned integers, so values beyond `i64` become text.
        let value = i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Integer);
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Value::Float(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::Text(value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set(field, Value::Text(format!("{value:?}")));
    }
}

/// Returns a random ID. The invalid ID of all zeros is not excluded, because its probability is negligible.
fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the system provides random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn finished_spans_are_queued_with_parent_kind_and_attributes() {
        let (finished, mut queue) = mpsc::channel(2);
        let subscriber = tracing_subscriber::registry().with(Recorder::new(finished));
        tracing::subscriber::with_default(subscriber, || {
            let outer = tracing::info_span!(
                "http",
                otel.kind = "server",
                otel.name = "GET /api",
                status = tracing::field::Empty
            );
            outer.in_scope(|| {
                tracing::info_span!("read", rows = 3_usize, late = true, share = 0.5, shown = ?[1])
                    .in_scope(|| {});
            });
            outer.record("status", 200_u16);
            drop(outer);
            // The queue holds two spans, so this third one is dropped.
            tracing::info_span!("dropped").in_scope(|| {});
        });
        let (inner, outer) = (queue.try_recv().unwrap(), queue.try_recv().unwrap());
        assert!(queue.try_recv().is_err());
        assert_eq!((outer.name.as_str(), outer.kind, outer.parent), ("GET /api", Kind::Server, None));
        assert_eq!((inner.name.as_str(), inner.kind, inner.parent), ("read", Kind::Internal, Some(outer.id)));
        assert_eq!(inner.trace, outer.trace);
        assert_ne!(inner.id, outer.id);
        assert!(outer.began <= inner.began && inner.began <= inner.ended && inner.ended <= outer.ended);
        let target = ("target", Value::Text(module_path!().into()));
        assert_eq!(outer.attributes, [target.clone(), ("status", Value::Integer(200))]);
        let values = [
            ("rows", Value::Integer(3)),
            ("late", Value::Bool(true)),
            ("share", Value::Float(0.5)),
            ("shown", Value::Text("[1]".into())),
        ];
        assert_eq!(inner.attributes, [vec![target], values.to_vec()].concat());
    }
}
