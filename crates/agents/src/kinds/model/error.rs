//! What can go wrong with an endpoint, in words for people.

use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError {
    pub kind: EndpointErrorKind,
    /// What the endpoint itself said, shortened and without anything secret.
    pub said: Option<Box<str>>,
    /// How long the endpoint wants to be left alone.
    pub wait: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointErrorKind {
    /// Nobody can be connected to.
    Unreachable,
    /// It leads into a private network.
    AddressBlocked,
    /// Nothing was heard for too long.
    Silent,
    TooManyRequests,
    Overloaded,
    /// It failed by itself, with this status.
    Broken(u16),
    KeyRefused,
    ModelUnknown,
    /// It does not take the request, with this status.
    Rejected(u16),
    /// It wants to send us elsewhere.
    Redirect,
    NotUnderstood,
    TooMuch,
    /// The connection ended before the answer did.
    ConnectionLost,
    SaidNothing,
}

impl EndpointError {
    pub fn new(kind: EndpointErrorKind) -> Self {
        Self { kind, said: None, wait: None }
    }

    pub fn of_status(status: u16) -> EndpointErrorKind {
        match status {
            401 | 403 => EndpointErrorKind::KeyRefused,
            404 => EndpointErrorKind::ModelUnknown,
            408 | 504 => EndpointErrorKind::Silent,
            429 => EndpointErrorKind::TooManyRequests,
            503 | 529 => EndpointErrorKind::Overloaded,
            300..=399 => EndpointErrorKind::Redirect,
            500.. => EndpointErrorKind::Broken(status),
            _ => EndpointErrorKind::Rejected(status),
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        use EndpointErrorKind::*;
        matches!(self.kind, Unreachable | TooManyRequests | Overloaded | Broken(_) | ConnectionLost | Silent)
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
            Silent => formatter.write_str("the model did not answer in time"),
            TooManyRequests => {
                formatter.write_str("the model's server wants fewer requests, or its quota is used up")
            }
            Overloaded => formatter.write_str("the model's server is overloaded"),
            Broken(status) => write!(formatter, "the model's server failed (status {status})"),
            KeyRefused => formatter.write_str("the model's server does not accept the key"),
            ModelUnknown => {
                formatter.write_str("the model's server does not know this model or this address")
            }
            Rejected(status) => write!(formatter, "the model's server refused the request (status {status})"),
            Redirect => formatter.write_str("the model's server wants to be asked at another address"),
            NotUnderstood => {
                formatter.write_str("the model's server answered with something that is not an answer")
            }
            TooMuch => formatter.write_str("the model said more than fits"),
            ConnectionLost => formatter.write_str("the model broke off in the middle"),
            SaidNothing => formatter.write_str("the model said nothing"),
        }?;
        match &self.said {
            Some(said) => write!(formatter, ": {said}"),
            None => Ok(()),
        }
    }
}
