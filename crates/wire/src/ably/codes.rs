//! Ably's error codes, and the mapping of refusals to them.

use super::fields;
use parlor_model::{EntityKind, Refusal};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub const BAD_REQUEST: u32 = 40000;
pub const INVALID_PARAMETER: u32 = 40003;
pub const INVALID_CREDENTIAL: u32 = 40005;
pub const TOO_LARGE: u32 = 40009;
pub const INVALID_CHANNEL: u32 = 40010;
pub const INVALID_CLIENT_ID: u32 = 40012;
pub const INVALID_DATA: u32 = 40013;
pub const WRONG_CREDENTIALS: u32 = 40101;
pub const INCOMPATIBLE_CLIENT_ID: u32 = 40102;
pub const TIMESTAMP_OUT_OF_RANGE: u32 = 40104;
pub const NONCE_REPLAYED: u32 = 40105;
pub const NO_CREDENTIALS: u32 = 40106;
pub const TOKEN_UNRECOGNISED: u32 = 40140;
pub const TOKEN_REVOKED: u32 = 40141;
pub const TOKEN_EXPIRED: u32 = 40142;
pub const INVALID_JWT: u32 = 40144;
pub const NOT_PERMITTED: u32 = 40160;
pub const FORBIDDEN: u32 = 40300;
pub const NOT_FOUND: u32 = 40400;
pub const METHOD_NOT_ALLOWED: u32 = 40500;
pub const CONFLICT: u32 = 40900;
pub const RATE_LIMITED: u32 = 42910;
pub const INTERNAL: u32 = 50000;
pub const UNAVAILABLE: u32 = 50003;
/// The connection has ended; the client connects again.
pub const DISCONNECTED: u32 = 80003;
pub const CONNECTION_EXPIRED: u32 = 80008;
pub const UNKNOWN_CONNECTION_KEY: u32 = 80018;
pub const TOO_MANY_CHANNELS: u32 = 90021;
/// The messages after the requested position are no longer available.
pub const CONTINUITY_LOST: u32 = 80016;

/// Error of a frame or of a REST answer (`ErrorInfo`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorInfo {
    pub message: Cow<'static, str>,
    pub code: u32,
    pub status_code: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub href: Option<Cow<'static, str>>,
}

impl ErrorInfo {
    /// Builds an error. The status follows from the code: clients renew their token on 401 with 40140 to 40149.
    pub fn new(code: u32, message: impl Into<Cow<'static, str>>) -> Self {
        let status_code = match code {
            UNAVAILABLE => 503,
            50000..=59999 => 500,
            FORBIDDEN => 403,
            40100..=40199 => 401,
            40000..=49999 => (code / 100) as u16,
            _ => 400,
        };
        let href = Some(format!("https://help.ably.io/error/{code}").into());
        Self { message: message.into(), code, status_code, href }
    }
}

/// Returns the error for a refusal of the engine.
pub fn error(refusal: &Refusal) -> ErrorInfo {
    let (code, message): (u32, Cow<'static, str>) = match refusal {
        Refusal::NotSignedIn => (TOKEN_UNRECOGNISED, "Token is not recognised".into()),
        Refusal::WrongCredentials => (WRONG_CREDENTIALS, "Invalid credentials".into()),
        Refusal::TokenRevoked => (TOKEN_REVOKED, "Token is revoked".into()),
        Refusal::Forbidden | Refusal::NotAMember { .. } => (NOT_PERMITTED, "Not permitted".into()),
        Refusal::NotFound(EntityKind::Room) => (NOT_FOUND, "Channel not found".into()),
        Refusal::NotFound(_) => (NOT_FOUND, "Not found".into()),
        Refusal::AlreadyExists(_) => (CONFLICT, "Already exists".into()),
        Refusal::BelongsToAnother(_) => (NOT_PERMITTED, "The id belongs to another sender".into()),
        Refusal::Invalid(errors) => {
            let parts = errors.iter().map(|error| format!("{} {}", fields::name(error.field), error.rule));
            (BAD_REQUEST, parts.collect::<Vec<_>>().join("; ").into())
        }
        Refusal::TooLarge { limit, .. } => {
            (TOO_LARGE, format!("Message exceeds the maximum size of {limit}").into())
        }
        Refusal::Conflict { .. } => (CONFLICT, "The id was used for another message".into()),
        Refusal::HasEnded(_) => (BAD_REQUEST, "It has ended".into()),
        Refusal::LastOneRequired(_) => (BAD_REQUEST, "It cannot be removed".into()),
        Refusal::NoSubscribers => (BAD_REQUEST, "No mailbox subscribes to the path".into()),
        Refusal::GatewayOffline => (UNAVAILABLE, "Gateway is offline".into()),
        Refusal::TooManyUploads { .. } => (BAD_REQUEST, "Too many uploads".into()),
        Refusal::RateLimited { .. } => (RATE_LIMITED, "Rate limit exceeded".into()),
        Refusal::TooManyConnections => (RATE_LIMITED, "Too many connections".into()),
        Refusal::AtCapacity => (UNAVAILABLE, "Server at capacity".into()),
        Refusal::Resync { .. } => (CONTINUITY_LOST, "The position is no longer available".into()),
        Refusal::Unavailable => {
            (UNAVAILABLE, "The hub cannot store anything now; nothing was changed".into())
        }
    };
    ErrorInfo::new(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_follows_from_the_code() {
        for (code, status) in [
            (40009, 400),
            (40142, 401),
            (40160, 401),
            (40300, 403),
            (40400, 404),
            (42910, 429),
            (50003, 503),
            (80018, 400),
        ] {
            assert_eq!(ErrorInfo::new(code, "").status_code, status, "{code}");
        }
        assert_eq!(error(&Refusal::Forbidden).code, 40160);
    }
}
