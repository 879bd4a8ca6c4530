//! The permission table: the verdict on every command and every query for every kind of caller.
//!
//! The cells state the policy independently of the code that implements it. A command or query without a row
//! fails a test.

mod agent_programs;
mod callers;
mod document;
mod families;
mod fixtures;
mod limited;
mod requests;
mod stored;
mod table;

use parlor_engine::Limits;
use parlor_engine::commands::AnyCommand;
use parlor_engine::ports::{Reader, Store};
use parlor_engine::queries::AnyQuery;
use parlor_model::{Caller, Refusal, Time};
use std::collections::BTreeSet;
use std::path::Path;

/// Limits that allow one project root.
fn limits() -> Limits {
    Limits { project_roots: vec!["/srv/code".into()], ..Limits::default() }
}

#[test]
fn every_command_is_permitted_for_every_caller_as_the_table_says() {
    table::check(&families::commands(), is_command_permitted);
}

#[test]
fn every_query_is_permitted_for_every_caller_as_the_table_says() {
    table::check(&families::queries(), is_query_permitted);
}

fn is_command_permitted(
    caller: &Caller,
    command: &AnyCommand,
    store: &mut dyn Store,
    _: &dyn Reader,
) -> Result<(), Refusal> {
    command.is_permitted(caller, Time(1_000), &limits(), store).unwrap()
}

fn is_query_permitted(
    caller: &Caller,
    query: &AnyQuery,
    _: &mut dyn Store,
    reader: &dyn Reader,
) -> Result<(), Refusal> {
    let mut permitted = None;
    let read = reader.with(&mut |snapshot| {
        permitted = Some(query.is_permitted(caller, Time(1_000), &limits(), snapshot)?);
        Ok(())
    });
    read.unwrap();
    permitted.expect("`with` runs the closure")
}

#[test]
fn every_listed_command_and_query_has_a_row() {
    let rows: BTreeSet<&str> = families::commands().iter().map(|row| row.request.name()).collect();
    let missing: Vec<_> = AnyCommand::NAMES.iter().filter(|name| !rows.contains(*name)).collect();
    assert_eq!(missing, [&""; 0], "commands without a row");
    let rows: BTreeSet<&str> = families::queries().iter().map(|row| row.request.name()).collect();
    let missing: Vec<_> = AnyQuery::NAMES.iter().filter(|name| !rows.contains(*name)).collect();
    assert_eq!(missing, [&""; 0], "queries without a row");
}

#[test]
fn the_document_of_permissions_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md");
    let document = document::document();
    if std::env::var_os("XTASK_WRITE_PERMISSIONS").is_some() {
        std::fs::write(&file, &document).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == document, "docs/permissions.md is not current: run `cargo xtask permissions`");
}
