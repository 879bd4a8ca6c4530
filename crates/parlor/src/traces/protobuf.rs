//! Encodes the `ExportTraceServiceRequest` of OTLP 1.x as protobuf.
//!
//! Field numbers are those of `opentelemetry/proto/trace/v1/trace.proto` and its imports.

use super::recorder::{Span, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// Span flags: the span is sampled, and its parent is known to be local to this process.
const FLAGS: u32 = 0x101;

pub fn export_request(spans: &[Span]) -> Vec<u8> {
    message(|request| {
        request.nested(1, |resource_spans| {
            resource_spans.nested(1, |resource| {
                resource.attribute(1, "service.name", &Value::Text("parlor".into()));
                resource.attribute(1, "service.version", &Value::Text(env!("CARGO_PKG_VERSION").into()));
            });
            resource_spans.nested(2, |scope_spans| {
                scope_spans.nested(1, |scope| scope.bytes(1, b"parlor"));
                spans.iter().for_each(|span| scope_spans.nested(2, |written| written.span(span)));
            });
        });
    })
}

fn message(write: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message(Vec::new());
    write(&mut message);
    message.0
}

struct Message(Vec<u8>);

/// Protobuf wire type of a field.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl Message {
    fn span(&mut self, span: &Span) {
        self.bytes(1, &span.trace);
        self.bytes(2, &span.id);
        if let Some(parent) = &span.parent {
            self.bytes(4, parent);
        }
        self.bytes(5, span.name.as_bytes());
        self.varint_field(6, span.kind as u64);
        self.fixed64(7, nanoseconds(span.began));
        self.fixed64(8, nanoseconds(span.ended));
        span.attributes.iter().for_each(|(key, value)| self.attribute(9, key, value));
        self.tag(16, Wire::Fixed32);
        self.0.extend(FLAGS.to_le_bytes());
    }

    fn attribute(&mut self, field: u32, key: &str, value: &Value) {
        self.nested(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.nested(2, |any| match value {
                Value::Text(text) => any.bytes(1, text.as_bytes()),
                Value::Bool(value) => any.varint_field(2, (*value).into()),
                Value::Integer(value) => any.varint_field(3, value.cast_unsigned()),
                Value::Float(value) => any.fixed64(4, value.to_bits()),
            });
        });
    }

    fn nested(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        self.bytes(field, &message(write));
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, Wire::Bytes);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Fixed64);
        self.0.extend(value.to_le_bytes());
    }

    fn varint_field(&mut self, field: u32, value: u64) {
        self.tag(field, Wire::Varint);
        self.varint(value);
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Kind;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_request_is_encoded_as_otlp_protobuf() {
        let span = Span {
            trace: [0xaa; 16],
            id: [0xbb; 8],
            parent: Some([0xcc; 8]),
            name: "read".into(),
            kind: Kind::Server,
            began: UNIX_EPOCH + Duration::from_nanos(1),
            ended: UNIX_EPOCH + Duration::from_nanos(0x0102_0304_0506_0708),
            attributes: vec![
                ("t", Value::Text("x".repeat(200))),
                ("b", Value::Bool(true)),
                ("i", Value::Integer(-1)),
                ("f", Value::Float(1.0)),
            ],
        };
        let mut text = vec![0x4a, 0xd1, 0x01, 0x0a, 1, b't', 0x12, 0xcb, 0x01, 0x0a, 0xc8, 0x01];
        text.extend([b'x'; 200]);
        let expected = [
            &[0x0a, 16][..],
            &[0xaa; 16],
            &[0x12, 8],
            &[0xbb; 8],
            &[0x22, 8],
            &[0xcc; 8],
            &[0x2a, 4],
            b"read",
            &[0x30, 2],
            &[0x39, 1, 0, 0, 0, 0, 0, 0, 0],
            &[0x41, 8, 7, 6, 5, 4, 3, 2, 1],
            &text,
            &[0x4a, 7, 0x0a, 1, b'b', 0x12, 2, 0x10, 1],
            &[0x4a, 16, 0x0a, 1, b'i', 0x12, 11, 0x18],
            &[0xff; 9],
            &[0x01],
            &[0x4a, 14, 0x0a, 1, b'f', 0x12, 9, 0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            &[0x85, 0x01, 0x01, 0x01, 0, 0],
        ]
        .concat();
        assert_eq!(message(|written| written.span(&span)), expected);
        let resource = export_request(&[]);
        assert!(resource.starts_with(b"\x0a"), "{resource:?}");
        let name = b"\x0a\x18\x0a\x0cservice.name\x12\x08\x0a\x06parlor";
        assert!(resource.windows(name.len()).any(|window| window == name), "{resource:?}");
        assert!(resource.ends_with(b"\x12\x0a\x0a\x08\x0a\x06parlor"), "{resource:?}");
    }
}
