//! Plans of agents: conversion between rows and model types, and their queries.

use super::SqlTables;
use super::rows::{all, from_json, json, maybe_text, one, run, shared, time};
use parlor_engine::Fault;
use parlor_model::{AgentId, CurrentPlan, RoomId, RunId};
use rusqlite::{Connection, Row, ToSql};
use std::ops::Deref;

const PLAN: &str = "room, agent, run, plan, text, rev, at";

pub fn put(sql: &Connection, plan: &CurrentPlan) -> Result<(), Fault> {
    let query = format!("INSERT OR REPLACE INTO plans ({PLAN}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let values: [&dyn ToSql; 7] = [
        &plan.room.as_str(),
        &plan.agent.as_str(),
        &plan.run.as_str(),
        &json(&plan.plan),
        &plan.text.as_deref(),
        &(plan.rev as i64),
        &plan.at.0,
    ];
    run(sql, &query, &values).map(drop)
}

fn plan(row: &Row<'_>) -> rusqlite::Result<CurrentPlan> {
    Ok(CurrentPlan {
        room: RoomId::stored(shared(row, 0)?),
        agent: AgentId::stored(shared(row, 1)?),
        run: RunId::stored(shared(row, 2)?),
        plan: from_json(row, 3)?,
        text: maybe_text(row, 4)?,
        rev: row.get::<_, i64>(5)? as u64,
        at: time(row, 6)?,
    })
}

impl<C: Deref<Target = Connection>> SqlTables<C> {
    pub fn find_plan(&self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault> {
        let query = format!("SELECT {PLAN} FROM plans WHERE room = ?1 AND agent = ?2");
        one(self.sql(), &query, &[&room.as_str(), &agent.as_str()], plan)
    }

    pub fn find_plans(&self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault> {
        let query = format!("SELECT {PLAN} FROM plans WHERE room = ?1 ORDER BY agent");
        all(self.sql(), &query, &[&room.as_str()], plan)
    }
}
