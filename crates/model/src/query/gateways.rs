//! Queries about gateways, and their answers.
