//! Queries about gateways.
