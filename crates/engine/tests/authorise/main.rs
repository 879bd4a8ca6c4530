//! The permission table: the verdict on every command and every query for every kind of caller.
//!
//! The cells state the policy independently of the code that implements it. A command or query without a row
//! does not compile.

mod callers;
mod commands;
mod fixtures;
mod queries;
mod requests;
mod table;

use parlor_engine::authorise::{authorise, authorise_query};

#[test]
fn every_command_is_decided_for_every_caller_as_the_table_says() {
    table::check(&commands::rows(), authorise);
}

#[test]
fn every_query_is_decided_for_every_caller_as_the_table_says() {
    table::check(&queries::rows(), authorise_query);
}
