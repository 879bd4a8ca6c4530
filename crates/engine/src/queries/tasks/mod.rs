//! Queries about tasks.
