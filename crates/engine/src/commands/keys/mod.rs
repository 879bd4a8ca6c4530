//! Commands on API keys.
