//! Buffered inserts of messages, deliveries and log rows, written several per statement.
//!
//! Starting and finishing a statement costs about as much as inserting a row. The buffering is not
//! observable: the transaction writes all pending rows before any read of them and before any other change.

use super::rows::SqlFaultExt;
use super::{log, mail, messages};
use parlor_engine::Fault;
use parlor_model::{Delivery, LoggedEvent, Message, Seq};
use rusqlite::{CachedStatement, Connection, Statement, ToSql};
use std::sync::Arc;

/// Rows written by one multi-row statement; fewer pending rows are written one by one.
const ROWS_PER_STATEMENT: usize = 16;

#[derive(Default)]
pub struct PendingRows {
    pub messages: Vec<Arc<Message>>,
    pub deliveries: Vec<(Delivery, Seq)>,
    pub log: Vec<LoggedEvent>,
}

/// The insert statements of a batch, prepared once.
pub struct Inserts<'a> {
    messages: Insert<'a>,
    deliveries: Insert<'a>,
    log: Insert<'a>,
}

impl<'a> Inserts<'a> {
    pub fn prepare(sql: &'a Connection) -> Result<Self, Fault> {
        let prepare = |(into, row)| Insert::prepare(sql, into, row).stored("preparing a statement");
        Ok(Self {
            messages: prepare(messages::INSERT)?,
            deliveries: prepare(mail::INSERT_DELIVERY)?,
            log: prepare(log::INSERT)?,
        })
    }

    pub fn write(&mut self, pending: &mut PendingRows) -> Result<(), Fault> {
        let PendingRows { messages, deliveries, log } = pending;
        self.messages
            .rows(messages, |message, row| messages::bind(message, row))
            .stored("writing a message")?;
        let deliver =
            |(delivery, seq): &(Delivery, Seq), row: &mut RowBinder| mail::bind_delivery(delivery, *seq, row);
        self.deliveries.rows(deliveries, deliver).stored("writing a delivery")?;
        self.log.rows(log, log::bind).stored("writing the log")
    }
}

/// Insert into one table: a statement for a single row, and one for `ROWS_PER_STATEMENT` rows.
struct Insert<'a> {
    sql: &'a Connection,
    into: &'static str,
    row: &'static str,
    single: CachedStatement<'a>,
    several: Option<CachedStatement<'a>>,
}

/// Binds the values of consecutive rows to the parameters of a statement.
pub struct RowBinder<'s, 'a> {
    statement: &'s mut Statement<'a>,
    bound: usize,
}

impl RowBinder<'_, '_> {
    pub fn value(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.bound += 1;
        self.statement.raw_bind_parameter(self.bound, value)
    }
}

impl<'a> Insert<'a> {
    fn prepare(sql: &'a Connection, into: &'static str, row: &'static str) -> rusqlite::Result<Self> {
        let single = sql.prepare_cached(&format!("{into} VALUES {row}"))?;
        Ok(Self { sql, into, row, single, several: None })
    }

    /// Writes all `rows` and clears the vector.
    fn rows<T>(
        &mut self,
        rows: &mut Vec<T>,
        bind: impl Fn(&T, &mut RowBinder) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let (chunks, rest) = rows.as_chunks::<ROWS_PER_STATEMENT>();
        for rows in chunks {
            write(self.several()?, rows, &bind)?;
        }
        for row in rest {
            write(&mut self.single, std::slice::from_ref(row), &bind)?;
        }
        rows.clear();
        Ok(())
    }

    fn several(&mut self) -> rusqlite::Result<&mut Statement<'a>> {
        if self.several.is_none() {
            let rows = [self.row; ROWS_PER_STATEMENT].join(", ");
            self.several = Some(self.sql.prepare_cached(&format!("{} VALUES {rows}", self.into))?);
        }
        Ok(self.several.as_mut().expect("the statement was prepared above"))
    }
}

fn write<T>(
    statement: &mut Statement<'_>,
    rows: &[T],
    bind: impl Fn(&T, &mut RowBinder) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut row = RowBinder { statement, bound: 0 };
    for values in rows {
        bind(values, &mut row)?;
    }
    statement.raw_execute().map(drop)
}
