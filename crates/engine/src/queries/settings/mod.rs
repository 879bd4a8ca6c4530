//! Queries about the hub's settings and the audit log.

mod get_settings;
mod list_audit_records;
mod may_read_metrics;
mod may_see_limits;
