//! Errors of a model endpoint, with messages for users.

use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError {
    pub kind: EndpointErrorKind,
    /// Error message of the endpoint, shortened and without secrets.
    pub detail: Option<Box<str>>,
    /// Delay that the endpoint requested with `Retry-After`.
    pub retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointErrorKind {
    /// No connection to the server could be made.
    Unreachable,
    /// The SSRF guard rejected the address because it is in a private network.
    AddressBlocked,
    /// A timeout expired before the response arrived.
    TimedOut,
    TooManyRequests,
    Overloaded,
    /// The server failed with this 5xx status.
    Broken(u16),
    KeyRefused,
    ModelUnknown,
    /// The server rejected the request with this status.
    Rejected(u16),
    /// The server sent a redirect, which is never followed.
    Redirect,
    /// The response is not in the format of the API.
    InvalidResponse,
    TooLarge,
    /// The connection ended before the answer was complete.
    ConnectionLost,
    EmptyAnswer,
}

impl EndpointError {
    pub fn new(kind: EndpointErrorKind) -> Self {
        Self { kind, detail: None, retry_after: None }
    }

    pub fn of_status(status: u16) -> EndpointErrorKind {
        match status {
            401 | 403 => EndpointErrorKind::KeyRefused,
            404 => EndpointErrorKind::ModelUnknown,
            408 | 504 => EndpointErrorKind::TimedOut,
            429 => EndpointErrorKind::TooManyRequests,
            503 | 529 => EndpointErrorKind::Overloaded,
            300..=399 => EndpointErrorKind::Redirect,
            500.. => EndpointErrorKind::Broken(status),
            _ => EndpointErrorKind::Rejected(status),
        }
    }

    /// Whether a retry of the same request can succeed.
    pub fn is_retryable(&self) -> bool {
        use EndpointErrorKind::*;
        matches!(
            self.kind,
            Unreachable | TooManyRequests | Overloaded | Broken(_) | ConnectionLost | TimedOut
        )
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use EndpointErrorKind::*;
        match self.kind {
            Unreachable => formatter.write_str("the model's server cannot be reached"),
            AddressBlocked => {
                formatter.write_str("the model's server is in a private network, which is not allowed")
            }
            TimedOut => formatter.write_str("the model did not answer in time"),
            TooManyRequests => {
                formatter.write_str("the model's server limits the request rate, or its quota is used up")
            }
            Overloaded => formatter.write_str("the model's server is overloaded"),
            Broken(status) => write!(formatter, "the model's server failed (status {status})"),
            KeyRefused => formatter.write_str("the model's server does not accept the key"),
            ModelUnknown => {
                formatter.write_str("the model's server does not know this model or this address")
            }
            Rejected(status) => {
                write!(formatter, "the model's server rejected the request (status {status})")
            }
            Redirect => formatter.write_str("the model's server sent a redirect, which is not followed"),
            InvalidResponse => formatter.write_str("the model's server sent an invalid response"),
            TooLarge => formatter.write_str("the model's answer is too large"),
            ConnectionLost => {
                formatter.write_str("the connection was lost in the middle of the model's answer")
            }
            EmptyAnswer => formatter.write_str("the model sent an empty answer"),
        }?;
        match &self.detail {
            Some(detail) => write!(formatter, ": {detail}"),
            None => Ok(()),
        }
    }
}
