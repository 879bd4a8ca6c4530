//! Schema migrations: bring a database file of any earlier version to the current schema.

use super::OpenError;
use rusqlite::{Connection, TransactionBehavior};

/// All migrations in order. `PRAGMA user_version` counts the ones already applied to a file. A released
/// migration never changes.
pub const MIGRATIONS: [&str; 35] = [
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
    include_str!("migrations/0024_model_json.sql"),
    include_str!("migrations/0025_stop_requested.sql"),
    include_str!("migrations/0026_paths.sql"),
    include_str!("migrations/0027_origins.sql"),
    include_str!("migrations/0028_signing_keys.sql"),
    include_str!("migrations/0029_task_priorities.sql"),
    include_str!("migrations/0030_session_settings.sql"),
    include_str!("migrations/0031_run_places.sql"),
    include_str!("migrations/0032_turns.sql"),
    include_str!("migrations/0033_member_names.sql"),
    include_str!("migrations/0034_room_invitations.sql"),
    include_str!("migrations/0035_agent_tokens.sql"),
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
    use parlor_model::run_event::{Choice, Plan, PlanState, PlanStep, Question, QuestionAnswer, StepState};

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
    fn members_with_one_name_are_distinguished() {
        let sql = super::super::connection::open_in_memory();
        let this = MIGRATIONS.iter().position(|migration| migration.contains("members_named")).unwrap();
        sql.execute_batch(&MIGRATIONS[..this].concat()).unwrap();
        for (user, name) in [("ada", "Ada"), ("grace", "Grace"), ("bob", "ADA")] {
            let insert = "INSERT INTO users (id, username, display_name, role, password_hash, failed_sign_ins, \
                          created_at, updated_at) VALUES (?1, ?1, ?2, 0, '', 0, 1, 1)";
            sql.execute(insert, (user, name)).unwrap();
        }
        for (agent, owner) in [("a1", "ada"), ("g1", "grace"), ("g2", "grace")] {
            let insert = "INSERT INTO agents (id, owner, name, description, settings, created_at) \
                          VALUES (?1, ?2, 'Bot', '', '{}', 1)";
            sql.execute(insert, (agent, owner)).unwrap();
        }
        let members = [(0, "ada"), (1, "a1"), (1, "g1"), (0, "grace"), (0, "bob"), (1, "g2")];
        for (place, (kind, member)) in members.into_iter().enumerate() {
            let insert = "INSERT INTO members (room, kind, member, role, joined_at, place, read_through) \
                          VALUES ('r', ?1, ?2, 0, 1, ?3, 0)";
            sql.execute(insert, (kind, member, place as i64)).unwrap();
        }
        sql.execute_batch(MIGRATIONS[this]).unwrap();
        let mut found = sql.prepare("SELECT name, name_key FROM members ORDER BY place").unwrap();
        let found = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let found: Vec<(String, String)> = found.map(Result::unwrap).collect();
        let names = ["Ada", "Bot", "Bot-grace", "Grace", "ADA-bob", "Bot-grace-5"];
        assert_eq!(found, names.map(|name| (name.to_owned(), name.to_lowercase())));
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

    #[test]
    fn plans_questions_and_answers_become_types_of_the_model() {
        let sql = super::super::connection::open_in_memory();
        sql.execute_batch(&MIGRATIONS[..23].concat()).unwrap();
        let text = r#"a \"b\" \\ \n \u0000 é"#;
        let plan = format!(
            r#"{{"summary":"{text}","items":[{{"title":"1","description":null,"status":"in_progress"}},{{"title":"2","description":"{text}","status":"skipped"}}],"status":"planned","plan_text":"{text}"}}"#
        );
        let bare = r#"{"summary":"","items":[],"status":"planned","plan_text":null}"#;
        for (agent, plan, state) in [("a", &*plan, "rejected"), ("b", bare, "planned")] {
            let insert = "INSERT INTO plans (room, agent, run, plan, state, rev, at) VALUES ('r', ?1, 'x', ?2, ?3, 1, 1)";
            sql.execute(insert, (agent, plan, state)).unwrap();
        }
        let questions = format!(
            r#"[{{"question":"{text}","header":"H","options":[{{"label":"{text}","description":null,"preview":"p"}},{{"label":"z","description":"d","preview":null}}],"multi_select":true}},{{"question":"2","header":"I","options":[],"multi_select":false}}]"#
        );
        let answers = format!(
            r#"[{{"question_index":1,"selected":[],"custom_text":"{text}"}},{{"question_index":0,"selected":["{text}","z"]}}]"#
        );
        let insert = "INSERT INTO approvals (id, run, room, agent, agent_name, gateway, request, tool, input, digest, \
                      asked_at, expires_at, matter, answers) \
                      VALUES (?1, 'x', 'r', 'a', 'a', 'g', ?1, 't', ?2, x'', 1, 1, ?3, ?4)";
        // The input of a tool is data of the agent, even if it looks like questions.
        for (id, matter, answers) in [("open", 1, None), ("answered", 1, Some(&answers)), ("tool", 0, None)] {
            sql.execute(insert, (id, &questions, matter, answers)).unwrap();
        }
        sql.execute_batch(MIGRATIONS[23]).unwrap();

        let text: Box<str> = serde_json::from_str::<String>(&format!("\"{text}\"")).unwrap().into();
        let read = |query: &str| sql.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
        let plan = |agent: &str| -> Plan {
            serde_json::from_str(&read(&format!("SELECT plan FROM plans WHERE agent = '{agent}'"))).unwrap()
        };
        let step = |title: &str, description, state| PlanStep { title: title.into(), description, state };
        let steps =
            vec![step("1", None, StepState::InProgress), step("2", Some(text.clone()), StepState::Skipped)];
        let expected =
            Plan { summary: text.clone(), state: PlanState::Rejected, steps, text: Some(text.clone()) };
        assert_eq!(plan("a"), expected);
        let expected = Plan { summary: "".into(), state: PlanState::Planned, steps: Vec::new(), text: None };
        assert_eq!(plan("b"), expected);
        let choice = |label: &str, description: Option<&str>, preview: Option<&str>| Choice {
            label: label.into(),
            description: description.map(Into::into),
            preview: preview.map(Into::into),
        };
        let options = vec![choice(&text, None, Some("p")), choice("z", Some("d"), None)];
        let expected = [
            Question { text: text.clone(), header: "H".into(), options, several: true },
            Question { text: "2".into(), header: "I".into(), options: Vec::new(), several: false },
        ];
        for id in ["open", "answered"] {
            let found = read(&format!("SELECT input FROM approvals WHERE id = '{id}'"));
            assert_eq!(serde_json::from_str::<Vec<Question>>(&found).unwrap(), expected);
        }
        assert_eq!(read("SELECT input FROM approvals WHERE id = 'tool'"), questions);
        let found = read("SELECT answers FROM approvals WHERE id = 'answered'");
        let expected = [
            QuestionAnswer { question: 1, selected: Vec::new(), text: Some(text.clone()) },
            QuestionAnswer { question: 0, selected: vec![text, "z".into()], text: None },
        ];
        assert_eq!(serde_json::from_str::<Vec<QuestionAnswer>>(&found).unwrap(), expected);
    }
}
