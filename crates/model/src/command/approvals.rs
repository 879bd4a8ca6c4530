//! Commands on approvals, questions and approval rules, and their receipts.
