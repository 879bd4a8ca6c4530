//! Queries about messages.
