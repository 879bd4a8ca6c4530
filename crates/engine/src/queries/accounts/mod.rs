//! Queries about accounts and profiles.
