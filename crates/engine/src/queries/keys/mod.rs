//! Queries about API keys.
