//! Serials of channels and messages, cursors of presence syncs, and connection ids and keys.

use super::codes::{self, ErrorInfo};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use parlor_model::{Epoch, Position, Seq, Time};
use sha2::Sha256;
use std::time::Duration;

/// Writes a position as `channelSerial`. The number is padded, because clients compare serials as text.
pub fn channel_serial(position: Position) -> String {
    format!("{}-{:016}", position.epoch, position.seq.0)
}

/// Parses a `channelSerial` or the `from_serial` of a history request. An error is that of an unknown position.
pub fn parse_channel_serial(text: &str) -> Result<Position, ErrorInfo> {
    let error = || ErrorInfo::new(codes::INVALID_PARAMETER, "channelSerial is not a serial of this hub");
    if !text.contains('-') {
        return Err(error());
    }
    Position::parse(text, Epoch(0)).ok_or_else(error)
}

/// Serial of a message: `<position>:<index>`. Serials of one channel sort as text in the order of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageSerial {
    pub position: Position,
    /// Index of the message among those with the same position.
    pub index: u32,
}

impl MessageSerial {
    pub fn new(epoch: Epoch, seq: Seq, index: u32) -> Self {
        Self { position: Position { epoch, seq }, index }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let (position, index) = text.rsplit_once(':')?;
        let digits = !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit());
        let index = digits.then(|| index.parse().ok()).flatten()?;
        Some(Self { position: parse_channel_serial(position).ok()?, index })
    }
}

impl std::fmt::Display for MessageSerial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{:03}", channel_serial(self.position), self.index)
    }
}

/// Writes the `channelSerial` of a SYNC frame. Without a cursor the frame is the last one of the sync.
pub fn sync_serial(sync: &str, cursor: Option<u64>) -> String {
    cursor.map_or_else(|| format!("{sync}:"), |cursor| format!("{sync}:{cursor}"))
}

/// Id of a connection, which clients see in messages. Contains neither `:` nor `!`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(Box<str>);

impl ConnectionId {
    pub fn from_random(bytes: [u8; 12]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes).into())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let valid = (1..=32).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        valid.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Id of a frame that this connection published.
    pub fn frame_id(&self, msg_serial: u64) -> String {
        format!("{}:{msg_serial}", self.0)
    }

    /// Id of a message, and idempotency key of its publication.
    pub fn message_id(&self, msg_serial: u64, index: usize) -> String {
        format!("{}:{msg_serial}:{index}", self.0)
    }
}

/// Secret of the hub that signs connection keys, so that they stay valid when the hub restarts.
pub struct ConnectionSecret(Hmac<Sha256>);

/// A connection key that this hub signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionKey {
    pub connection: ConnectionId,
    pub issued_at: Time,
}

impl ConnectionSecret {
    pub fn new(secret: &[u8]) -> Self {
        Self(Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"))
    }

    /// Signs the key of a connection. `principal` identifies the account or key that may resume it.
    pub fn sign(&self, key: &ConnectionKey, principal: &str) -> String {
        let tag = self.mac(key, principal).finalize().into_bytes();
        let tag = URL_SAFE_NO_PAD.encode(&tag[..16]);
        format!("{}!{:x}.{tag}", key.connection.as_str(), key.issued_at.0)
    }

    /// Verifies a key that a client sent in `resume` or `recover`.
    pub fn verify(&self, text: &str, principal: &str) -> Result<ConnectionKey, ErrorInfo> {
        let unknown = || ErrorInfo::new(codes::UNKNOWN_CONNECTION_KEY, "Connection key is not recognised");
        let parsed = || {
            let (id, rest) = text.split_once('!')?;
            let (issued, tag) = rest.split_once('.')?;
            let hex = !issued.is_empty() && issued.bytes().all(|b| b.is_ascii_hexdigit());
            let issued_at = Time(hex.then(|| i64::from_str_radix(issued, 16).ok()).flatten()?);
            let tag = URL_SAFE_NO_PAD.decode(tag).ok().filter(|tag| tag.len() == 16)?;
            Some((ConnectionKey { connection: ConnectionId::parse(id)?, issued_at }, tag))
        };
        let (key, tag) = parsed().ok_or_else(unknown)?;
        self.mac(&key, principal).verify_truncated_left(&tag).map_err(|_| unknown())?;
        Ok(key)
    }

    fn mac(&self, key: &ConnectionKey, principal: &str) -> Hmac<Sha256> {
        let id = key.connection.as_str();
        self.0.clone().chain_update(format!("ably-connection\n{id}\n{}\n{principal}", key.issued_at.0))
    }
}

/// Returns whether a verified connection may be resumed.
///
/// The hub forgets when a connection was lost if it restarts; the connection was then alive at most until the
/// start, so the start is the time from which `ttl` counts.
pub fn may_resume(
    lost_at: Option<Time>,
    hub_started: Time,
    now: Time,
    ttl: Duration,
) -> Result<(), ErrorInfo> {
    if now <= lost_at.unwrap_or(hub_started).plus(ttl) {
        return Ok(());
    }
    Err(ErrorInfo::new(codes::CONNECTION_EXPIRED, "Connection state has expired"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serials_sort_as_text_and_parse_back() {
        let serial = |seq| MessageSerial::new(Epoch(31), Seq(seq), 0);
        assert_eq!(serial(7).to_string(), "0000001f-0000000000000007:000");
        assert!(serial(9).to_string() < serial(10).to_string());
        assert_eq!(MessageSerial::parse(&serial(9).to_string()), Some(serial(9)));
        assert_eq!(parse_channel_serial("0000001f-0000000000000007").unwrap(), serial(7).position);
        for bad in ["", "7", "x-1", "0000001f-", "0000001f-1:2"] {
            assert_eq!(parse_channel_serial(bad).unwrap_err().code, 40003, "{bad}");
        }
        for bad in ["", "0000001f-1", "0000001f-1:", "0000001f-1:-1", "0000001f-1:99999999999"] {
            assert_eq!(MessageSerial::parse(bad), None, "{bad}");
        }
        assert_eq!((sync_serial("a", None), sync_serial("a", Some(3))), ("a:".into(), "a:3".into()));
    }

    #[test]
    fn a_key_is_valid_for_its_principal_and_secret_only() {
        let secret = ConnectionSecret::new(b"secret");
        let key = ConnectionKey { connection: ConnectionId::from_random([7; 12]), issued_at: Time(1234) };
        let text = secret.sign(&key, "user u");
        assert_eq!(secret.verify(&text, "user u").unwrap(), key);
        assert_eq!(secret.verify(&text, "user v").unwrap_err().code, 80018);
        assert_eq!(ConnectionSecret::new(b"other").verify(&text, "user u").unwrap_err().code, 80018);
        for at in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[at] = if forged[at] == b'A' { b'Q' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(secret.verify(&forged, "user u").is_err(), "{forged}");
        }
    }

    #[test]
    fn a_connection_expires_after_its_time_to_live() {
        let (ttl, start) = (Duration::from_secs(120), Time(0));
        let at = |seconds: i64| Time(seconds * 1_000_000);
        assert!(may_resume(Some(at(1000)), start, at(1120), ttl).is_ok());
        assert_eq!(may_resume(Some(at(1000)), start, at(1121), ttl).unwrap_err().code, 80008);
        assert!(may_resume(None, start, at(120), ttl).is_ok());
        assert_eq!(may_resume(None, start, at(121), ttl).unwrap_err().code, 80008);
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]
        #[test]
        fn random_text_is_no_key_and_causes_no_panic(text in "\\PC{0,40}|[a-f0-9!.A]{0,40}") {
            prop_assert!(ConnectionSecret::new(b"s").verify(&text, "p").is_err());
            let _ = MessageSerial::parse(&text);
        }
    }
}
