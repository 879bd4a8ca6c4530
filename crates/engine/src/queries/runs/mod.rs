//! Queries about runs.
