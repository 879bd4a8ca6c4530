//! Commands on approvals, questions and approval rules.
