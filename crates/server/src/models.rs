//! Models that people name. How they are reached is not the server's business.

use parlor_model::ModelAccess;
use std::pin::Pin;

/// For [`crate::Seal`]: the keys of models.
pub const MODEL_KEYS: &str = "parlor model keys 1";

pub trait Models: Send + Sync {
    /// The address as it is kept, or why it cannot be one.
    fn address(&self, text: &str) -> Result<Box<str>, &'static str>;
    /// Asks the model something simple; if nothing comes of it, why.
    fn probe(&self, model: ModelAccess) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}
