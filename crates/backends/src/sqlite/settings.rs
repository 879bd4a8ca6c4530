//! The hub's settings: reads, changes, and conversion between rows and model types.

use super::rows::{one, run};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::SettingsChange;
use parlor_engine::ports::ReadSettings;
use parlor_model::HubSettings;
use rusqlite::{Connection, ToSql};

impl<C: Sql> ReadSettings for SqlTables<C> {
    fn settings(&mut self) -> Result<HubSettings, Fault> {
        let value = "(SELECT value FROM settings WHERE key = ?)";
        let query = format!("SELECT {value}, {value}, {value}, {value}");
        let found = one(self.sql()?, &query, &SETTINGS.each_ref().map(|key| key as &dyn ToSql), |row| {
            Ok(HubSettings {
                name: row.get::<_, Option<String>>(0)?.map(Into::into),
                invitations: row.get(1)?,
                lockout_failures: row.get(2)?,
                lockout_seconds: row.get(3)?,
            })
        })?;
        Ok(found.unwrap_or_default())
    }
}

pub fn apply(sql: &Connection, change: &SettingsChange) -> Result<(), Fault> {
    match change {
        SettingsChange::PutSettings(settings) => {
            run(sql, "DELETE FROM settings", &[])?;
            let name = settings.name.as_deref();
            let values: [Option<&dyn ToSql>; 4] = [
                name.as_ref().map(|name| name as &dyn ToSql),
                settings.invitations.as_ref().map(|on| on as &dyn ToSql),
                settings.lockout_failures.as_ref().map(|failures| failures as &dyn ToSql),
                settings.lockout_seconds.as_ref().map(|seconds| seconds as &dyn ToSql),
            ];
            for (key, value) in SETTINGS.iter().zip(values) {
                if let Some(value) = value {
                    run(sql, "INSERT INTO settings VALUES (?1, ?2)", &[key, value])?;
                }
            }
        }
    }
    Ok(())
}

/// Keys of the `HubSettings` fields on disk, in the order of the fields.
pub const SETTINGS: [&str; 4] = ["name", "invitations", "lockout_failures", "lockout_seconds"];
