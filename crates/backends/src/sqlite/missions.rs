//! Missions and idle prompts: reads, changes, and conversion between rows and model types.

use super::rows::{all, maybe_text, maybe_time, number, one, run, shared, text, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::MissionChange;
use parlor_engine::ports::ReadMissions;
use parlor_model::{AgentId, IdlePrompt, Mission, MissionAgent, MissionId, MissionScope, RoomId, UserId};
use rusqlite::{Connection, Row, ToSql};

impl<C: Sql> ReadMissions for SqlTables<C> {
    fn mission(&mut self, id: &MissionId) -> Result<Option<Mission>, Fault> {
        let query = format!("SELECT {MISSION} FROM missions WHERE id = ?1");
        let found = one(self.sql()?, &query, &[&id.as_str()], mission)?;
        Ok(self.with_agents(found.into_iter().collect())?.pop())
    }

    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault> {
        let (kind, scope) = key(mission_scope);
        let query = format!(
            "SELECT {MISSION} FROM missions WHERE realm_kind = ?1 AND realm = ?2 \
             ORDER BY created_at DESC, id DESC LIMIT ?3"
        );
        let found = all(self.sql()?, &query, &[&kind, &scope, &number(limit)], mission)?;
        self.with_agents(found)
    }

    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault> {
        let query = format!("SELECT {MISSION} FROM missions WHERE ended_at IS NULL ORDER BY created_at, id");
        let found = all(self.sql()?, &query, &[], mission)?;
        self.with_agents(found)
    }

    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault> {
        let (kind, scope) = key(mission_scope);
        let query = "SELECT prompt, interval FROM idle WHERE realm_kind = ?1 AND realm = ?2 AND agent = ?3";
        one(self.sql()?, query, &[&kind, &scope, &agent.as_str()], |row| idle(row, 0))
    }
}

pub fn apply(sql: &Connection, change: &MissionChange) -> Result<(), Fault> {
    match change {
        MissionChange::PutMission(mission) => put(sql, mission)?,
        MissionChange::PutIdlePrompt { mission_scope, agent, idle } => {
            put_idle(sql, mission_scope, agent, idle.as_ref())?
        }
    }
    Ok(())
}

const MISSION: &str = "id, realm_kind, realm, room, text, created_by, created_at, ended_at, prompts";

/// Values of the column `realm_kind` (the kind of a mission scope). They are stored on disk: never reuse one.
const ROOM: i64 = 0;

const ROOT: i64 = 1;

const GLOBAL: i64 = 2;

fn key(mission_scope: &MissionScope) -> (i64, &str) {
    match mission_scope {
        MissionScope::Room(room) => (ROOM, room.as_str()),
        MissionScope::Root(root) => (ROOT, root),
        MissionScope::Global => (GLOBAL, ""),
    }
}

fn mission_scope(row: &Row<'_>, index: usize) -> rusqlite::Result<MissionScope> {
    Ok(match row.get::<_, i64>(index)? {
        ROOM => MissionScope::Room(RoomId::stored(shared(row, index + 1)?)),
        ROOT => MissionScope::Root(text(row, index + 1)?),
        _ => MissionScope::Global,
    })
}

pub fn put(sql: &Connection, mission: &Mission) -> Result<(), Fault> {
    let (kind, scope) = key(&mission.mission_scope);
    let query =
        format!("INSERT OR REPLACE INTO missions ({MISSION}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)");
    let values: [&dyn ToSql; 9] = [
        &mission.id.as_str(),
        &kind,
        &scope,
        &mission.room.as_str(),
        &&*mission.text,
        &mission.created_by.as_str(),
        &mission.created_at.0,
        &mission.ended_at.map(|at| at.0),
        &mission.prompts,
    ];
    run(sql, &query, &values)?;
    run(sql, "DELETE FROM mission_agents WHERE mission = ?1", &[&mission.id.as_str()])?;
    for entry in &mission.agents {
        let values: [&dyn ToSql; 6] = [
            &mission.id.as_str(),
            &entry.agent.as_str(),
            &entry.named,
            &entry.idle.prompt.as_deref(),
            &entry.idle.interval,
            &entry.prompted_at.map(|at| at.0),
        ];
        run(sql, "INSERT INTO mission_agents VALUES (?1, ?2, ?3, ?4, ?5, ?6)", &values)?;
    }
    Ok(())
}

pub fn put_idle(
    sql: &Connection,
    mission_scope: &MissionScope,
    agent: &AgentId,
    idle: Option<&IdlePrompt>,
) -> Result<(), Fault> {
    let (kind, scope) = key(mission_scope);
    match idle {
        Some(idle) => {
            let values: [&dyn ToSql; 5] =
                [&kind, &scope, &agent.as_str(), &idle.prompt.as_deref(), &idle.interval];
            run(sql, "INSERT OR REPLACE INTO idle VALUES (?1, ?2, ?3, ?4, ?5)", &values).map(drop)
        }
        None => {
            let query = "DELETE FROM idle WHERE realm_kind = ?1 AND realm = ?2 AND agent = ?3";
            run(sql, query, &[&kind, &scope, &agent.as_str()]).map(drop)
        }
    }
}

fn mission(row: &Row<'_>) -> rusqlite::Result<Mission> {
    Ok(Mission {
        id: MissionId::stored(shared(row, 0)?),
        mission_scope: mission_scope(row, 1)?,
        room: RoomId::stored(shared(row, 3)?),
        text: text(row, 4)?,
        agents: Vec::new(),
        created_by: UserId::stored(shared(row, 5)?),
        created_at: time(row, 6)?,
        ended_at: maybe_time(row, 7)?,
        prompts: row.get(8)?,
    })
}

fn idle(row: &Row<'_>, index: usize) -> rusqlite::Result<IdlePrompt> {
    Ok(IdlePrompt { prompt: maybe_text(row, index)?, interval: row.get(index + 1)? })
}

impl<C: Sql> SqlTables<C> {
    fn with_agents(&mut self, mut missions: Vec<Mission>) -> Result<Vec<Mission>, Fault> {
        let query = "SELECT agent, named, prompt, interval, prompted_at FROM mission_agents \
                     WHERE mission = ?1 ORDER BY agent";
        for mission in &mut missions {
            mission.agents = all(self.sql()?, query, &[&mission.id.as_str()], |row| {
                Ok(MissionAgent {
                    agent: AgentId::stored(shared(row, 0)?),
                    named: row.get(1)?,
                    idle: idle(row, 2)?,
                    prompted_at: maybe_time(row, 4)?,
                })
            })?;
        }
        Ok(missions)
    }
}
