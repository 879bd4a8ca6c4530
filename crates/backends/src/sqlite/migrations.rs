//! How a database file of any age becomes one of today.

use super::OpenError;
use rusqlite::{Connection, TransactionBehavior};

/// Every step ever taken; `user_version` says how many a file has behind it. A step that was released never
/// changes.
pub const MIGRATIONS: [&str; 2] =
    [include_str!("migrations/0001_first.sql"), include_str!("migrations/0002_arrangements.sql")];

/// All missing steps in one transaction: a file is of its old age or of today's, never between.
pub fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for step in &MIGRATIONS[found as usize..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    if found == 0 {
        let epoch = i64::from(getrandom::u32()?);
        transaction.execute("INSERT INTO meta VALUES ('epoch', ?1), ('trimmed', 0)", [epoch])?;
    }
    transaction.commit()?;
    Ok(())
}
