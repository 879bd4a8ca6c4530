//! Queries about operating the hub.
