//! Shared parts of the frame types of all protocols.
//!
//! A frame is one variant of an enum with a struct as its body. Encoding is derived. Parsing reads `type` first
//! and then the struct of that variant: a derived `Deserialize` of a tagged enum cannot contain a `RawValue`,
//! and a `Value` in its place loses digits of large numbers.

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Defines the frames of one direction of a protocol, which the hub or one of Parlor's own clients also parses.
macro_rules! frames {
    ($(#[$meta:meta])* pub enum $name:ident<$life:lifetime> {
        $($(#[$doc:meta])* $variant:ident($body:ty) = $type:tt,)+
    }) => {
        $(#[$meta])*
        #[derive(serde::Serialize)]
        #[serde(tag = "type")]
        pub enum $name<$life> {
            $($(#[$doc])* #[serde(rename = $type)] $variant($body),)+
        }

        impl<$life> $name<$life> {
            /// Parses the body of a frame with this `type`. `None` if the type is unknown.
            pub fn parse(kind: &str, text: &$life str) -> serde_json::Result<Option<Self>> {
                Ok(Some(match kind {
                    $($type => Self::$variant(serde_json::from_str(text)?),)+
                    _ => return Ok(None),
                }))
            }
        }
    };
}

pub(crate) use frames;

/// Encodes a frame of usual size.
pub fn encode(frame: &impl Serialize) -> String {
    encode_about(frame, 256)
}

/// Encodes a frame into a buffer of initially `size` bytes. A good estimate avoids reallocation.
pub(crate) fn encode_about(frame: &impl Serialize, size: usize) -> String {
    let mut text = Vec::with_capacity(size);
    serde_json::to_writer(&mut text, frame).expect("frames consist of strings, numbers and lists");
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Reads the `type` of a frame and nothing behind it. `Some(None)` if it is absent or `null`; `None` if the text
/// is no object or its `type` is no string.
pub(crate) fn peek_type(text: &str) -> Option<Option<Cow<'_, str>>> {
    let mut found = None;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // The result is an error whenever fields follow `type`, because the visitor does not read them.
    let _ = deserializer.deserialize_map(TypeVisitor(&mut found));
    found
}

struct TypeVisitor<'f, 'de>(&'f mut Option<Option<Cow<'de, str>>>);

impl<'de> Visitor<'de> for TypeVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a frame")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = fields.next_key()? {
            if key == "type" {
                *self.0 = Some(fields.next_value::<Option<Text<'de>>>()?.map(|Text(kind)| kind));
                return Ok(());
            }
            fields.next_value::<IgnoredAny>()?;
        }
        *self.0 = Some(None);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Deserialises a field that distinguishes `null` from an absent value.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
