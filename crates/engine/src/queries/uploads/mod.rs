//! Queries about uploads.
