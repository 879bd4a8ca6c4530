//! Port to the models that users configure for routers and service agents. Implemented outside this crate.

use parlor_model::ModelAccess;
use std::pin::Pin;

/// Purpose of the [`crate::Seal`] that encrypts the API keys of models.
pub const MODEL_KEYS: &str = "parlor model keys 1";

pub trait Models: Send + Sync {
    /// Returns the base URL in the form in which it is stored, or the rule that it violates.
    fn address(&self, text: &str) -> Result<Box<str>, &'static str>;
    /// Sends a short request to the model; returns the reason if it fails.
    fn probe(&self, model: ModelAccess) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}
