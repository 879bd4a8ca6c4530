//! What can go wrong with an endpoint, in words for people.

use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub kind: TroubleKind,
    /// What the endpoint itself said, shortened and without anything secret.
    pub said: Option<Box<str>>,
    /// How long the endpoint wants to be left alone.
    pub wait: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// Nobody can be connected to.
    Unreachable,
    /// It leads into a private network.
    Barred,
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
    BrokeOff,
    SaidNothing,
}

impl Trouble {
    pub fn new(kind: TroubleKind) -> Self {
        Self { kind, said: None, wait: None }
    }

    pub fn of_status(status: u16) -> TroubleKind {
        match status {
            401 | 403 => TroubleKind::KeyRefused,
            404 => TroubleKind::ModelUnknown,
            408 | 504 => TroubleKind::Silent,
            429 => TroubleKind::TooManyRequests,
            503 | 529 => TroubleKind::Overloaded,
            300..=399 => TroubleKind::Redirect,
            500.. => TroubleKind::Broken(status),
            _ => TroubleKind::Rejected(status),
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn may_pass(&self) -> bool {
        use TroubleKind::*;
        matches!(self.kind, Unreachable | TooManyRequests | Overloaded | Broken(_) | BrokeOff | Silent)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TroubleKind::*;
        match self.kind {
            Unreachable => formatter.write_str("the model's server cannot be reached"),
            Barred => formatter.write_str("the model's server is in a private network, which is not allowed"),
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
            BrokeOff => formatter.write_str("the model broke off in the middle"),
            SaidNothing => formatter.write_str("the model said nothing"),
        }?;
        match &self.said {
            Some(said) => write!(formatter, ": {said}"),
            None => Ok(()),
        }
    }
}
