//! Data of messages and presence members, and the chain of encodings that describes it.
//!
//! Inside the hub, data is text or bytes, and the chain describes only what the publisher did to it (`json`,
//! `cipher+aes-256-cbc`). `base64` is a property of the JSON transport: decoding removes it from the end of the
//! chain, and the JSON encoder adds it for bytes. All other encodings are opaque. JSON and msgpack receivers and
//! the history therefore return the same data.

use super::jaibber::Object;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Maximum nesting of arrays and objects in frames and bodies.
pub(super) const MAX_DEPTH: usize = 32;

/// Standard alphabet. Clients may omit the padding; the hub writes it.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl Data<'_> {
    pub fn length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Splits the last encoding off a chain: `json/base64` becomes (`json`, `base64`).
fn split_last(chain: &str) -> (Option<&str>, &str) {
    match chain.rsplit_once('/') {
        Some((rest, last)) => (Some(rest).filter(|rest| !rest.is_empty()), last),
        None => (None, chain),
    }
}

/// Data and chain as a receiver reads them. Bytes in JSON become base64.
pub(super) fn for_receiver<'a>(
    data: Option<&'a Data<'_>>,
    chain: Option<&'a str>,
    json: bool,
) -> (Option<Data<'a>>, Option<Cow<'a, str>>) {
    let chain = chain.map(Cow::Borrowed);
    match data {
        None => (None, chain),
        Some(Data::Text(text)) => (Some(Data::Text(Cow::Borrowed(text))), chain),
        Some(Data::Bytes(bytes)) if json => {
            let chain = chain.map_or(Cow::Borrowed("base64"), |chain| format!("{chain}/base64").into());
            (Some(Data::Text(BASE64.encode(bytes).into())), Some(chain))
        }
        Some(Data::Bytes(bytes)) => (Some(Data::Bytes(Cow::Borrowed(bytes))), chain),
    }
}

/// Data and chain as a client sent them, in the form that the hub uses. An error is a text for the client.
pub(super) fn from_sender(
    data: Option<GivenData>,
    chain: Option<String>,
) -> Result<(Option<Data<'static>>, Option<Cow<'static, str>>), &'static str> {
    let mut chain = chain.filter(|chain| !chain.is_empty());
    if chain.as_ref().is_some_and(|chain| chain.len() > 256 || chain.chars().any(char::is_control)) {
        return Err("encoding is too long or contains a control character");
    }
    let data = match data {
        None => None,
        Some(GivenData::Bytes(bytes)) => Some(Data::Bytes(bytes.into())),
        Some(GivenData::Json(value)) => {
            // The client library always sends text; other programs may publish an object as it is.
            if chain.is_some() {
                return Err("data with an encoding must be a string or binary");
            }
            chain = Some("json".into());
            Some(Data::Text(value.into()))
        }
        Some(GivenData::Text(text)) => match chain.as_deref().map(split_last) {
            Some((rest, "base64")) => {
                let bytes = BASE64.decode(text).map_err(|_| "data is not valid base64")?;
                let rest = rest.map(str::to_owned);
                chain = rest;
                Some(Data::Bytes(bytes.into()))
            }
            _ => Some(Data::Text(text.into())),
        },
    };
    Ok((data, chain.map(Cow::Owned)))
}

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => serializer.serialize_bytes(bytes),
        }
    }
}

/// Data in the form in which a client sent it.
pub(super) enum GivenData {
    Text(String),
    Bytes(Vec<u8>),
    Json(String),
}

impl<'de> Deserialize<'de> for GivenData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DataVisitor;

        impl<'de> Visitor<'de> for DataVisitor {
            type Value = GivenData;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, binary, an object or a list")
            }

            fn visit_str<E>(self, text: &str) -> Result<GivenData, E> {
                Ok(GivenData::Text(text.into()))
            }

            fn visit_string<E>(self, text: String) -> Result<GivenData, E> {
                Ok(GivenData::Text(text))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<GivenData, E> {
                Ok(GivenData::Bytes(bytes.into()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<GivenData, E> {
                Ok(GivenData::Bytes(bytes))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<GivenData, A::Error> {
                JsonVisitor.visit_map(map).map(|value| GivenData::Json(value.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<GivenData, A::Error> {
                JsonVisitor.visit_seq(list).map(|value| GivenData::Json(value.to_string()))
            }
        }

        if !deserializer.is_human_readable() {
            return deserializer.deserialize_any(DataVisitor);
        }
        // Objects and lists keep their text, because parsing would round numbers.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        match raw.get().as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw.get()).map(GivenData::Text).map_err(D::Error::custom),
            Some(b'{' | b'[') => Ok(GivenData::Json(raw.get().to_owned())),
            _ => Err(D::Error::custom("data must be a string or binary")),
        }
    }
}

/// JSON object that the hub relays unchanged: `extras`. Numbers in JSON keep their text.
#[derive(Debug, Clone)]
pub struct Json(pub Box<RawValue>);

impl Json {
    /// Wraps JSON text; `None` if the text is not well-formed.
    pub fn parse(text: &str) -> Option<Self> {
        RawValue::from_string(text.into()).ok().map(Self)
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.0.serialize(serializer);
        }
        Exact(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Box::<RawValue>::deserialize(deserializer).map(Self);
        }
        let value = deserializer.deserialize_any(JsonVisitor)?;
        RawValue::from_string(value.to_string()).map(Self).map_err(D::Error::custom)
    }
}

/// Writes JSON text as msgpack. Parses numbers with the standard library: `serde_json` rounds some of them.
struct Exact<'a>(&'a RawValue);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let text = self.0.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let object: Object = serde_json::from_str(text).map_err(S::Error::custom)?;
                serializer.collect_map(object.0.iter().map(|(name, value)| (name, Exact(value))))
            }
            Some(b'[') => {
                let list: Vec<&RawValue> = serde_json::from_str(text).map_err(S::Error::custom)?;
                serializer.collect_seq(list.into_iter().map(Exact))
            }
            Some(b'-' | b'0'..=b'9') => match (text.parse::<u64>(), text.parse::<i64>(), text.parse::<f64>())
            {
                (Ok(number), _, _) => serializer.serialize_u64(number),
                (_, Ok(number), _) => serializer.serialize_i64(number),
                (_, _, Ok(number)) => serializer.serialize_f64(number),
                _ => Err(S::Error::custom("not a number")),
            },
            _ => serde_json::from_str::<Value>(text).map_err(S::Error::custom)?.serialize(serializer),
        }
    }
}

/// Reads a value that has a JSON form. Rejects binary values and repeated keys, which have none.
struct JsonVisitor;

struct JsonValue(Value);

impl<'de> Deserialize<'de> for JsonValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(JsonValue(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some((key, JsonValue(value))) = map.next_entry::<String, JsonValue>()? {
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("repeated key"));
            }
        }
        Ok(Value::Object(object))
    }
}
