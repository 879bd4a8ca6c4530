//! Queries about approvals, questions and approval rules, and their answers.
