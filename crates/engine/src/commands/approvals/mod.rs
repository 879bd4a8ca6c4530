//! Commands on approvals, which are permission requests and question sets of agents, and on approval rules.
//!
//! Owns: default deny, since only an authorised user or a rule allows a tool. An approval is bound to its
//! run, its tool and exactly its input, and is withdrawn in the transaction that ends its run.

mod answer_questions;
mod ask_approval;
pub mod audit;
mod decide_approval;
mod decision;
mod expire_approval;
mod question_answers;
mod revoke_approval_rule;
#[cfg(test)]
mod test_fixtures;
pub mod withdrawal;
