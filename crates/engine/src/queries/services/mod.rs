//! Queries about services.
