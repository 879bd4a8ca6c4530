//! Queries about the hub's settings and the audit log.
