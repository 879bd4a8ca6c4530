//! Fixed words that several protocols use in their frames.

use parlor_model::Decision;
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;

/// Defines an enum with the variants of a model enum, and the conversion from it. A new variant there fails to
/// compile until it is added here.
macro_rules! mirror_enum {
    ($(#[$meta:meta])* $name:ident, $case:tt, $($from:ident)::+ { $($variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(rename_all = $case)]
        pub enum $name { $($variant),+ }

        impl From<parlor_model::$($from)::+> for $name {
            fn from(value: parlor_model::$($from)::+) -> Self {
                use parlor_model::$($from)::+ as Model;
                match value { $(Model::$variant => Self::$variant),+ }
            }
        }
    };
}

pub(crate) use mirror_enum;

/// `Message.source` of messages that were published on a channel of the Ably protocol.
pub const CHANNEL_SOURCE: &str = "ably";

mirror_enum!(AgentState, "lowercase", AgentStatus { Online, Offline, Busy, Error });

/// Result of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum PermissionResult {
    Allow,
    Deny,
    Answered,
    Timeout,
}

impl PermissionResult {
    /// Default deny: an approval without a decision counts as denied.
    pub fn of(decision: Option<&Decision>) -> Self {
        match decision {
            Some(Decision::Allowed { .. } | Decision::AllowedByRule) => Self::Allow,
            Some(Decision::Denied { .. } | Decision::Withdrawn) | None => Self::Deny,
            Some(Decision::Answered { .. }) => Self::Answered,
            Some(Decision::Expired) => Self::Timeout,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Answered => "answered",
            Self::Timeout => "timeout",
        }
    }
}

/// Status of a question set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum QuestionStatus {
    Answered,
    Expired,
    Withdrawn,
}

impl QuestionStatus {
    pub fn of(decision: Option<&Decision>) -> Self {
        match decision {
            Some(Decision::Answered { .. }) => Self::Answered,
            Some(Decision::Expired) => Self::Expired,
            _ => Self::Withdrawn,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}
