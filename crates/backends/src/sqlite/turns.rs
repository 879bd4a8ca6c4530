//! Automatic turns: reads, changes, and conversion between rows and model types.

use super::mail::{SESSION, session_of};
use super::rows::{all, number, run, text, time};
use super::{Sql, SqlTables, agents};
use parlor_engine::Fault;
use parlor_engine::changes::TurnChange;
use parlor_engine::ports::ReadTurns;
use parlor_model::{
    Agent, AgentId, MessageId, NewTurnDecision, RunId, Session, SessionId, Time, TurnDecision,
    TurnDecisionKind, TurnPage,
};
use rusqlite::{Connection, Row, ToSql};

impl<C: Sql> ReadTurns for SqlTables<C> {
    fn automatic_agents(&mut self) -> Result<Vec<Agent>, Fault> {
        // `settings` is a JSON list of (name, value) texts. A name in a value is escaped, but a value could be equal to a
        // name, so the rows are checked again.
        let query = format!(
            "SELECT {} FROM agents WHERE instr(settings, '[\"autoRun\",') OR instr(settings, '[\"heartbeat\",') \
             ORDER BY id",
            agents::AGENT
        );
        let mut found = all(self.sql()?, &query, &[], agents::agent)?;
        found.retain(|agent| {
            agent.settings.contains_key("autoRun") || agent.settings.contains_key("heartbeat")
        });
        Ok(found)
    }

    fn automatic_sessions(&mut self) -> Result<Vec<Session>, Fault> {
        let query = format!("SELECT {SESSION} FROM sessions WHERE auto_run IS NOT NULL ORDER BY agent, id");
        all(self.sql()?, &query, &[], session_of)
    }

    fn turn_decisions(&mut self, agents: &[AgentId], page: &TurnPage) -> Result<Vec<TurnDecision>, Fault> {
        let before = page.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let values: [&dyn ToSql; 4] =
            [&ids(agents), &page.session.as_ref().map(SessionId::as_str), &before, &number(page.limit)];
        all(self.sql()?, DECISIONS, &values, decision)
    }

    fn turn_counts(
        &mut self,
        agents: &[AgentId],
        session: Option<&SessionId>,
    ) -> Result<Vec<(TurnDecisionKind, u64)>, Fault> {
        let query = "SELECT kind, count(*) FROM turn_decisions WHERE agent IN (SELECT value FROM json_each(?1)) \
                     AND (?2 IS NULL OR session = ?2) GROUP BY kind";
        let values: [&dyn ToSql; 2] = [&ids(agents), &session.map(SessionId::as_str)];
        let mut counts =
            all(self.sql()?, query, &values, |row| Ok((kind(row, 0)?, row.get::<_, i64>(1)? as u64)))?;
        counts.sort();
        Ok(counts)
    }
}

const DECISIONS: &str = "SELECT number, at, agent, session, kind, reason, run, attempt, messages FROM turn_decisions \
     WHERE agent IN (SELECT value FROM json_each(?1)) AND (?2 IS NULL OR session = ?2) AND number < ?3 \
     ORDER BY number DESC LIMIT ?4";

pub fn apply(sql: &Connection, change: &TurnChange) -> Result<(), Fault> {
    match change {
        TurnChange::AppendDecision(decision) => {
            let messages: Vec<&str> = decision.messages.iter().map(MessageId::as_str).collect();
            let values: [&dyn ToSql; 8] = [
                &decision.at.0,
                &decision.agent.as_str(),
                &decision.session.as_str(),
                &decision.kind.as_str(),
                &decision.reason.as_deref(),
                &decision.run.as_ref().map(RunId::as_str),
                &decision.attempt,
                &json(&messages),
            ];
            let query = "INSERT INTO turn_decisions VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            run(sql, query, &values).map(drop)
        }
    }
}

/// Deletes decisions older than `oldest`, looking at the first 10,000 rows only to keep the transaction short.
pub fn trim(sql: &Connection, oldest: Time) -> Result<(), Fault> {
    let query = "DELETE FROM turn_decisions WHERE at < ?1 AND number IN \
                 (SELECT number FROM turn_decisions ORDER BY number LIMIT 10000)";
    run(sql, query, &[&oldest.0]).map(drop)
}

fn decision(row: &Row<'_>) -> rusqlite::Result<TurnDecision> {
    let messages: Vec<String> = serde_json::from_str(row.get_ref(8)?.as_str()?).unwrap_or_default();
    Ok(TurnDecision {
        number: row.get::<_, i64>(0)? as u64,
        decision: NewTurnDecision {
            at: time(row, 1)?,
            agent: AgentId::stored(text(row, 2)?),
            session: SessionId::stored(text(row, 3)?),
            kind: kind(row, 4)?,
            reason: row.get_ref(5)?.as_str_or_null()?.map(Into::into),
            run: row.get_ref(6)?.as_str_or_null()?.map(RunId::stored),
            attempt: row.get(7)?,
            messages: messages.into_iter().map(MessageId::stored).collect(),
        },
    })
}

fn kind(row: &Row<'_>, index: usize) -> rusqlite::Result<TurnDecisionKind> {
    let unknown =
        || rusqlite::Error::InvalidColumnType(index, "turn_decisions".into(), rusqlite::types::Type::Text);
    TurnDecisionKind::parse(row.get_ref(index)?.as_str()?).ok_or_else(unknown)
}

fn ids(agents: &[AgentId]) -> String {
    json(&agents.iter().map(AgentId::as_str).collect::<Vec<_>>())
}

fn json(texts: &[&str]) -> String {
    serde_json::to_string(texts).expect("strings always serialise to JSON")
}
