//! Query helpers, and conversion of values between columns and Rust types.

use parlor_engine::Fault;
use parlor_model::{Seq, Time};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Converts a database error into a `Fault`; `context` names the failed operation.
pub trait SqlFaultExt<T> {
    fn stored(self, context: &'static str) -> Result<T, Fault>;
}

impl<T> SqlFaultExt<T> for Result<T, rusqlite::Error> {
    fn stored(self, context: &'static str) -> Result<T, Fault> {
        self.map_err(|error| Fault::new(context, super::severity(&error), error))
    }
}

type Read<T> = fn(&Row<'_>) -> rusqlite::Result<T>;

pub fn one<T>(
    sql: &Connection,
    query: &str,
    values: &[&dyn ToSql],
    read: Read<T>,
) -> Result<Option<T>, Fault> {
    let query_row = || {
        let mut statement = sql.prepare_cached(query)?;
        let mut rows = statement.query(values)?;
        rows.next()?.map(read).transpose()
    };
    query_row().stored("reading")
}

pub fn all<T>(sql: &Connection, query: &str, values: &[&dyn ToSql], read: Read<T>) -> Result<Vec<T>, Fault> {
    let found = || sql.prepare_cached(query)?.query_map(values, read)?.collect();
    let found: rusqlite::Result<Vec<T>> = found();
    found.stored("reading")
}

pub fn run(sql: &Connection, query: &str, values: &[&dyn ToSql]) -> Result<usize, Fault> {
    let execute = || sql.prepare_cached(query)?.execute(values);
    execute().stored("writing")
}

/// Converts a limit or an offset to an SQLite integer, saturating.
pub fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a `Seq` to an SQLite integer. Saturates: no log reaches `i64::MAX`.
pub fn seq_value(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}

pub fn text(row: &Row<'_>, index: usize) -> rusqlite::Result<Box<str>> {
    Ok(row.get_ref(index)?.as_str()?.into())
}

pub fn maybe_text(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Box<str>>> {
    Ok(row.get_ref(index)?.as_str_or_null()?.map(Into::into))
}

/// Encodes a value of the model for a column.
pub fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("types of the model always serialise to JSON")
}

pub fn from_json<T: DeserializeOwned>(row: &Row<'_>, index: usize) -> rusqlite::Result<T> {
    let decoded = serde_json::from_str(row.get_ref(index)?.as_str()?);
    decoded.map_err(|error| rusqlite::Error::FromSqlConversionFailure(index, Type::Text, Box::new(error)))
}

pub fn shared(row: &Row<'_>, index: usize) -> rusqlite::Result<Arc<str>> {
    Ok(row.get_ref(index)?.as_str()?.into())
}

pub fn time(row: &Row<'_>, index: usize) -> rusqlite::Result<Time> {
    row.get(index).map(Time)
}

pub fn maybe_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Time))
}

pub fn seq(row: &Row<'_>, index: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(index)? as u64))
}
