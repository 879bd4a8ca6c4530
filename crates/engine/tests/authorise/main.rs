//! The permission table: the verdict on every command and every query for every kind of caller.
//!
//! The cells state the policy independently of the code that implements it. A command or query without a row
//! does not compile.

mod callers;
mod commands;
mod fixtures;
mod listed_commands;
mod listed_queries;
mod queries;
mod requests;
mod stored;
mod table;

use parlor_engine::Limits;
use parlor_engine::authorise::{authorise, authorise_query};
use parlor_model::Time;

#[test]
fn every_command_is_decided_for_every_caller_as_the_table_says() {
    table::check(&commands::rows(), authorise);
}

#[test]
fn every_query_is_decided_for_every_caller_as_the_table_says() {
    table::check(&queries::rows(), authorise_query);
}

#[test]
fn every_command_with_a_type_is_permitted_for_every_caller_as_the_table_says() {
    table::check_stored(&listed_commands::rows(), |caller, command, store, _| {
        command.is_permitted(caller, Time(1_000), &Limits::default(), store).unwrap()
    });
}

#[test]
fn every_query_with_a_type_is_permitted_for_every_caller_as_the_table_says() {
    table::check_stored(&listed_queries::rows(), |caller, query, _, reader| {
        let mut permitted = None;
        let read = reader.with(&mut |snapshot| {
            permitted = Some(query.is_permitted(caller, Time(1_000), &Limits::default(), snapshot)?);
            Ok(())
        });
        read.unwrap();
        permitted.expect("`with` runs the closure")
    });
}
