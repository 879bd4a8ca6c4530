//! Queries about approvals and approval rules.

mod list_approval_rules;
mod list_approvals;
mod list_open_questions;
mod list_own_approvals;
