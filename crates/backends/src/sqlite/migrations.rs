//! Schema migrations: bring a database file of any earlier version to the current schema.

use super::OpenError;
use rusqlite::{Connection, TransactionBehavior};

/// All migrations in order. `PRAGMA user_version` counts the ones already applied to a file. A released
/// migration never changes.
pub const MIGRATIONS: [&str; 23] = [
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_arrangements.sql"),
    include_str!("migrations/0003_marks.sql"),
    include_str!("migrations/0004_hears.sql"),
    include_str!("migrations/0005_search.sql"),
    include_str!("migrations/0006_uploads.sql"),
    include_str!("migrations/0007_people.sql"),
    include_str!("migrations/0008_audit.sql"),
    include_str!("migrations/0009_mail.sql"),
    include_str!("migrations/0010_beginnings.sql"),
    include_str!("migrations/0011_hosts.sql"),
    include_str!("migrations/0012_runs.sql"),
    include_str!("migrations/0013_approvals.sql"),
    include_str!("migrations/0014_dismissed.sql"),
    include_str!("migrations/0015_pairings.sql"),
    include_str!("migrations/0016_routers.sql"),
    include_str!("migrations/0017_runs_by_room.sql"),
    include_str!("migrations/0018_services.sql"),
    include_str!("migrations/0019_questions.sql"),
    include_str!("migrations/0020_plans.sql"),
    include_str!("migrations/0021_project_roots.sql"),
    include_str!("migrations/0022_missions.sql"),
    include_str!("migrations/0023_relayed.sql"),
];

/// Applies all missing migrations in one transaction: the file has either its old schema or the current one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_from_before_threads_existed_are_put_into_threads() {
        let sql = super::super::connection::open_in_memory();
        sql.execute_batch(MIGRATIONS[0]).unwrap();
        // Message `e` replies to a message that was deleted.
        let messages =
            [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("c")), ("e", Some("gone"))];
        for (id, to) in messages {
            let values = "(id, at, room, sender_kind, sender, sender_name, kind, text, reply_to, source)";
            let insert =
                format!("INSERT INTO messages {values} VALUES (?1, 1, 'r', 0, 's', 's', 0, 't', ?2, 'i')");
            sql.execute(&insert, (id, to)).unwrap();
        }
        sql.execute_batch(&MIGRATIONS[1..].concat()).unwrap();
        let mut found = sql.prepare("SELECT id, thread FROM messages ORDER BY id").unwrap();
        let found = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let found: Vec<(String, Option<String>)> = found.map(Result::unwrap).collect();
        let threads: Vec<_> = found.iter().map(|(id, thread)| (&**id, thread.as_deref())).collect();
        let expected =
            [("a", None), ("b", Some("a")), ("c", Some("a")), ("d", Some("a")), ("e", Some("gone"))];
        assert_eq!(threads, expected);
    }

    #[test]
    fn existing_mail_stays_pending_or_settled_after_the_migration() {
        let sql = super::super::connection::open_in_memory();
        sql.execute_batch(&MIGRATIONS[..8].concat()).unwrap();
        // One delivery per state: 0 pending, 1 delivered, 2 leased, 3 dead.
        for state in 0..4 {
            let insert =
                "INSERT INTO deliveries VALUES ('coder', 'main', ?1, 'm' || ?1, ?1, ?1 * 10, ?1 * 100, '[]')";
            sql.execute(insert, [state]).unwrap();
        }
        sql.execute_batch(MIGRATIONS[8]).unwrap();
        let query = "SELECT settled, seq, state, leased_until, attempts FROM deliveries \
                     WHERE agent = 'coder' AND session = 'main' AND handled_by = '[]' ORDER BY settled, seq";
        let mut found = sql.prepare(query).unwrap();
        let found =
            found.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?]));
        let found: Vec<[i64; 5]> = found.unwrap().map(Result::unwrap).collect();
        let expected = [[0, 0, 0, 0, 0], [0, 2, 2, 20, 200], [1, 1, 1, 10, 100], [1, 3, 3, 30, 300]];
        assert_eq!(found, expected);
    }
}
