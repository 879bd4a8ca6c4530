//! Queries about the hub's settings and the audit log, and their answers.
