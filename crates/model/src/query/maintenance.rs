//! Queries about operating the hub, and their answers.
