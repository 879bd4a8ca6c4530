//! The permission table: the verdict on every command and every query for every kind of caller.
//!
//! The cells state the policy independently of the code that implements it. A command or query without a row
//! fails a test.

mod callers;
mod commands;
mod fixtures;
mod listed;
mod queries;
mod requests;
mod stored;
mod table;

use parlor_engine::Limits;
use parlor_engine::authorise::{authorise, authorise_query};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::Time;
use std::collections::BTreeSet;

/// Limits that allow one project root.
fn limits() -> Limits {
    Limits { project_roots: vec!["/srv/code".into()], ..Limits::default() }
}

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
    table::check_stored(&listed::commands(), |caller, command, store, _| {
        command.is_permitted(caller, Time(1_000), &limits(), store).unwrap()
    });
}

#[test]
fn every_query_with_a_type_is_permitted_for_every_caller_as_the_table_says() {
    table::check_stored(&listed::queries(), |caller, query, _, reader| {
        let mut permitted = None;
        let read = reader.with(&mut |snapshot| {
            permitted = Some(query.is_permitted(caller, Time(1_000), &limits(), snapshot)?);
            Ok(())
        });
        read.unwrap();
        permitted.expect("`with` runs the closure")
    });
}

#[test]
fn every_listed_command_and_query_has_a_row() {
    let rows: BTreeSet<&str> = listed::commands().iter().map(|row| row.request.name()).collect();
    let missing: Vec<_> = AnyCommand::NAMES.iter().filter(|name| !rows.contains(*name)).collect();
    assert_eq!(missing, [&"Legacy"], "commands without a row");
    let rows: BTreeSet<&str> = listed::queries().iter().map(|row| row.request.name()).collect();
    let missing: Vec<_> = AnyQuery::NAMES.iter().filter(|name| !rows.contains(*name)).collect();
    assert_eq!(missing, [&"Legacy"], "queries without a row");
}
