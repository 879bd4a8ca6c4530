//! Words for the decision of an approval that several protocols share.

use parlor_model::Decision;

/// Returns the result of a permission request.
pub fn permission(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allowed { .. } | Decision::AllowedByRule => "allow",
        Decision::Denied { .. } | Decision::Withdrawn => "deny",
        Decision::Answered { .. } => "answered",
        Decision::Expired => "timeout",
    }
}

/// Returns the status of a question set.
pub fn question_set(decision: &Decision) -> &'static str {
    match decision {
        Decision::Answered { .. } => "answered",
        Decision::Expired => "expired",
        _ => "withdrawn",
    }
}
