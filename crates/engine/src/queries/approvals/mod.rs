//! Queries about approvals, questions and approval rules.
