//! Opens connections to SQLite. All connections of this crate are opened here, so that they share one setting.
//!
//! The query planner stability guarantee (QPSG) is on: a statement keeps the plan of its preparation. Without
//! the guarantee, SQLite with `STAT4` plans a cached statement again whenever it binds other values.

use parlor_model::mention;
use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

pub fn open(file: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    prepared(Connection::open_with_flags(file, flags)?)
}

#[cfg(test)]
pub fn open_in_memory() -> Connection {
    prepared(Connection::open_in_memory().unwrap()).unwrap()
}

/// Sets stable plans, and registers the SQL function `name_key`, which migrations call.
fn prepared(connection: Connection) -> Result<Connection, rusqlite::Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("name_key", 1, flags, |context| {
        Ok(mention::name_key(context.get_raw(0).as_str()?).into_string())
    })?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_stable_plans(connection: &Connection) -> bool {
        connection.db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG).unwrap()
    }

    #[test]
    fn every_connection_has_stable_query_plans() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("parlor.db");
        assert!(has_stable_plans(&open(&file, OpenFlags::default()).unwrap()));
        let reader = super::super::ReaderPool::open(&file, 2).unwrap();
        assert!(has_stable_plans(&open_in_memory()));
        assert_eq!(reader.idle.lock().iter().filter(|idle| has_stable_plans(idle)).count(), 2);
    }

    #[test]
    fn connections_are_opened_only_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("connection.rs")
            {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("Connection::open"), "{} opens a connection itself", path.display());
            }
        }
    }
}
