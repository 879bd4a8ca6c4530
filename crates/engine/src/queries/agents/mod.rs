//! Queries about agents.
