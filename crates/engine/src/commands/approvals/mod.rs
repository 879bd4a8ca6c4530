//! Commands on approvals, questions and approval rules.

pub mod withdrawal;
