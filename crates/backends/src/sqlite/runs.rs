//! Runs and agents' plans: reads, changes, and conversion between rows and model types.

use super::rows::{all, from_json, json, maybe_text, maybe_time, number, one, run, shared, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::RunChange;
use parlor_engine::ports::{BudgetUsage, RECENT_RUNS_SEARCHED, ReadRuns};
use parlor_model::{
    AddressedBy, AgentId, ConversationId, CurrentPlan, Lineage, MessageId, RoomId, Run, RunCause, RunContext,
    RunId, RunOutcome, RunPlace, RunState, SessionId, TaskId, Time, Usage, UserId,
};
use rusqlite::{Connection, Row, ToSql};

impl<C: Sql> ReadRuns for SqlTables<C> {
    fn run(&mut self, id: &RunId) -> Result<Option<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE id = ?1", RUN);
        one(self.sql()?, &query, &[&id.as_str()], run_row)
    }

    fn runs_of(&mut self, message: &MessageId) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE message = ?1 ORDER BY place", RUN);
        all(self.sql()?, &query, &[&message.as_str()], run_row)
    }

    fn ended_turn(&mut self, agent: &AgentId, conversation: &ConversationId) -> Result<Option<Run>, Fault> {
        let recent = "SELECT * FROM runs WHERE agent = ?1 AND ended_at IS NOT NULL ORDER BY ended_at DESC, place DESC LIMIT ?3";
        let query = format!("SELECT {} FROM ({recent}) WHERE conversation = ?2 LIMIT 1", RUN);
        one(
            self.sql()?,
            &query,
            &[&agent.as_str(), &conversation.as_str(), &(RECENT_RUNS_SEARCHED as i64)],
            run_row,
        )
    }

    fn open_runs_in(&mut self, room: &RoomId) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE state < 2 AND room = ?1 ORDER BY place", RUN);
        all(self.sql()?, &query, &[&room.as_str()], run_row)
    }

    fn open_runs_of_session(&mut self, agent: &AgentId, session: &SessionId) -> Result<Vec<Run>, Fault> {
        let query =
            format!("SELECT {RUN} FROM runs WHERE state < 2 AND agent = ?1 AND session = ?2 ORDER BY place");
        all(self.sql()?, &query, &[&agent.as_str(), &session.as_str()], run_row)
    }

    fn open_runs_of_owner(&mut self, owner: &UserId) -> Result<Vec<Run>, Fault> {
        let query =
            format!("SELECT {RUN} FROM runs WHERE state < 2 AND owner = ?1 AND room IS NULL ORDER BY place");
        all(self.sql()?, &query, &[&owner.as_str()], run_row)
    }

    fn has_open_run(&mut self, agent: &AgentId) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM runs WHERE state < 2 AND agent = ?1 LIMIT 1";
        Ok(one(self.sql()?, query, &[&agent.as_str()], |_| Ok(()))?.is_some())
    }

    fn spent(&mut self, context: &RunContext, agent: &AgentId, since: Time) -> Result<BudgetUsage, Fault> {
        let (condition, id) = match context {
            RunContext::Room(room) => ("room = ?1", room.as_str()),
            RunContext::Session(session) => ("session = ?1", session.as_str()),
        };
        let query = format!(
            "SELECT count(*), coalesce(sum(input_tokens + output_tokens), 0) FROM runs \
             WHERE {condition} AND agent = ?2 AND queued_at >= ?3 AND state <> 6"
        );
        let spent = one(self.sql()?, &query, &[&id, &agent.as_str(), &since.0], |row| {
            Ok(BudgetUsage { turns: row.get::<_, i64>(0)? as u64, tokens: row.get::<_, i64>(1)? as u64 })
        })?;
        Ok(spent.unwrap_or_default())
    }

    fn asked(&mut self, room: &RoomId, by: &AgentId, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let query = "SELECT count(*) FROM runs WHERE asked_by = ?1 AND agent = ?2 AND queued_at >= ?3 \
                     AND room = ?4 AND state <> 6";
        let values: [&dyn ToSql; 4] = [&by.as_str(), &agent.as_str(), &since.0, &room.as_str()];
        let count = one(self.sql()?, query, &values, |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    fn spoken(&mut self, agent: &AgentId, since: Time) -> Result<u64, Fault> {
        let query = "SELECT count(*) FROM runs WHERE agent = ?1 AND ended_at >= ?2 AND reply IS NOT NULL";
        let count = one(self.sql()?, query, &[&agent.as_str(), &since.0], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    fn open_runs(&mut self) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE state < 2 ORDER BY place", RUN);
        all(self.sql()?, &query, &[], run_row)
    }

    fn runs_in(&mut self, room: &RoomId, limit: usize) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE room = ?1 ORDER BY place DESC LIMIT ?2", RUN);
        all(self.sql()?, &query, &[&room.as_str(), &number(limit)], run_row)
    }

    fn runs_of_owner(&mut self, owner: &UserId, limit: usize) -> Result<Vec<Run>, Fault> {
        let query =
            format!("SELECT {RUN} FROM runs WHERE owner = ?1 AND room IS NULL ORDER BY place DESC LIMIT ?2");
        all(self.sql()?, &query, &[&owner.as_str(), &number(limit)], run_row)
    }

    fn runs_below(&mut self, run: &RunId) -> Result<Vec<Run>, Fault> {
        let query = format!("SELECT {} FROM runs WHERE parent = ?1 ORDER BY place", RUN);
        all(self.sql()?, &query, &[&run.as_str()], run_row)
    }

    fn latest_runs(&mut self, agent: &AgentId, limit: usize) -> Result<Vec<Run>, Fault> {
        let of = |rest| format!("SELECT {} FROM runs WHERE agent = ?1 AND {rest} LIMIT ?2", RUN);
        let open = of("ended_at IS NULL ORDER BY place DESC");
        let mut runs = all(self.sql()?, &open, &[&agent.as_str(), &(limit as i64)], run_row)?;
        let left = (limit - runs.len()) as i64;
        let ended = of("ended_at IS NOT NULL ORDER BY ended_at DESC, place DESC");
        runs.extend(all(self.sql()?, &ended, &[&agent.as_str(), &left], run_row)?);
        Ok(runs)
    }

    fn plan(&mut self, room: &RoomId, agent: &AgentId) -> Result<Option<CurrentPlan>, Fault> {
        let query = format!("SELECT {PLAN} FROM plans WHERE room = ?1 AND agent = ?2");
        one(self.sql()?, &query, &[&room.as_str(), &agent.as_str()], plan)
    }

    fn plans(&mut self, room: &RoomId) -> Result<Vec<CurrentPlan>, Fault> {
        let query = format!("SELECT {PLAN} FROM plans WHERE room = ?1 ORDER BY agent");
        all(self.sql()?, &query, &[&room.as_str()], plan)
    }
}

pub fn apply(sql: &Connection, change: &RunChange) -> Result<(), Fault> {
    match change {
        RunChange::PutRun(it) => put_run(sql, it)?,
        RunChange::PutPlan(plan) => put_plan(sql, plan)?,
    }
    Ok(())
}

fn put_run(sql: &Connection, it: &Run) -> Result<(), Fault> {
    let (state, reason) = run_state(&it.state);
    let (room, session, owner) = place_columns(&it.place);
    let (batch, attempt) = match &it.cause {
        RunCause::Batch { messages, attempt } => (Some(json(messages)), Some(*attempt)),
        _ => (None, None),
    };
    let (prompt, prompted_by) = match &it.cause {
        RunCause::Explicit { prompt, by } => (Some(&**prompt), Some(by.as_str())),
        _ => (None, None),
    };
    let chain: Vec<&str> = it.lineage.chain.iter().map(AgentId::as_str).collect();
    run(
        sql,
        "INSERT INTO runs (id, agent, room, message, task, asked_by, addressed, conversation, depth, chain, parent, \
         state, reason, reply, input_tokens, output_tokens, cost, queued_at, started_at, ended_at, arrival, stop_requested, \
         session, owner, batch, attempt, prompt, prompted_by) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, \
         ?23, ?24, ?25, ?26, ?27, ?28) \
         ON CONFLICT (id) DO UPDATE SET state = ?12, reason = ?13, reply = ?14, input_tokens = ?15, \
         output_tokens = ?16, cost = ?17, started_at = ?19, ended_at = ?20, chain = ?10, parent = ?11, \
         stop_requested = ?22",
        &[
            &it.id.as_str(),
            &it.agent.as_str(),
            &room,
            &it.message().map(|id| id.as_str()),
            &it.task().map(|id| id.as_str()),
            &it.asked_by.as_ref().map(|id| id.as_str()),
            &addressed(it.addressed),
            &it.lineage.conversation.as_str(),
            &it.lineage.depth,
            &chain.join(" "),
            &it.parent.as_ref().map(|id| id.as_str()),
            &state,
            &reason,
            &it.reply.as_ref().map(|id| id.as_str()),
            &(it.usage.input_tokens as i64),
            &(it.usage.output_tokens as i64),
            &it.usage.cost.map(|cost| cost as i64),
            &it.queued_at.0,
            &it.started_at.map(|time| time.0),
            &it.ended_at.map(|time| time.0),
            &it.arrival().map(|id| id.as_str()),
            &it.stop_requested,
            &session,
            &owner,
            &batch,
            &attempt,
            &prompt,
            &prompted_by,
        ],
    )
    .map(drop)
}

const PLAN: &str = "room, agent, run, plan, text, rev, at";

pub fn put_plan(sql: &Connection, plan: &CurrentPlan) -> Result<(), Fault> {
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

pub const RUN: &str = "id, agent, room, message, task, asked_by, addressed, conversation, depth, chain, parent, state, \
     reason, reply, input_tokens, output_tokens, cost, queued_at, started_at, ended_at, arrival, \
     stop_requested, session, owner, batch, attempt, prompt, prompted_by";

/// Values of the columns `room`, `session` and `owner`.
pub fn place_columns(place: &RunPlace) -> (Option<&str>, Option<&str>, Option<&str>) {
    let owner = match place {
        RunPlace::Room(_) => None,
        RunPlace::Session { owner, .. } => Some(owner.as_str()),
    };
    (place.room().map(RoomId::as_str), place.session().map(SessionId::as_str), owner)
}

/// Reads a place from the columns `room`, `session` and `owner` at these indexes.
pub fn place(row: &Row<'_>, room: usize, session: usize, owner: usize) -> rusqlite::Result<RunPlace> {
    let Some(id) = row.get_ref(session)?.as_str_or_null()? else {
        return Ok(RunPlace::Room(RoomId::stored(shared(row, room)?)));
    };
    Ok(RunPlace::Session {
        session: SessionId::stored(id),
        room: row.get_ref(room)?.as_str_or_null()?.map(RoomId::stored),
        owner: UserId::stored(shared(row, owner)?),
    })
}

fn cause(row: &Row<'_>) -> rusqlite::Result<RunCause> {
    if let Some(message) = row.get_ref(3)?.as_str_or_null()? {
        return Ok(RunCause::Message(MessageId::stored(message)));
    }
    if let Some(task) = row.get_ref(4)?.as_str_or_null()? {
        return Ok(RunCause::Task(TaskId::stored(task)));
    }
    if let Some(user) = row.get_ref(20)?.as_str_or_null()? {
        return Ok(RunCause::Arrival(UserId::stored(user)));
    }
    if let Some(attempt) = row.get(25)? {
        let ids: Vec<String> = from_json(row, 24)?;
        return Ok(RunCause::Batch { messages: ids.into_iter().map(MessageId::stored).collect(), attempt });
    }
    if let Some(prompt) = row.get_ref(26)?.as_str_or_null()? {
        return Ok(RunCause::Explicit { prompt: prompt.into(), by: UserId::stored(shared(row, 27)?) });
    }
    Ok(RunCause::Unprompted)
}

pub fn run_row(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: RunId::stored(shared(row, 0)?),
        agent: AgentId::stored(shared(row, 1)?),
        place: place(row, 2, 22, 23)?,
        cause: cause(row)?,
        asked_by: row.get_ref(5)?.as_str_or_null()?.map(AgentId::stored),
        addressed: match row.get::<_, i64>(6)? {
            0 => AddressedBy::Directly,
            1 => AddressedBy::ByPolicy,
            _ => AddressedBy::Unasked,
        },
        lineage: Lineage {
            conversation: ConversationId::stored(shared(row, 7)?),
            depth: row.get(8)?,
            // Agent ids never contain a space.
            chain: row.get_ref(9)?.as_str()?.split(' ').map(AgentId::stored).collect(),
        },
        parent: row.get_ref(10)?.as_str_or_null()?.map(RunId::stored),
        state: read_state(row.get(11)?, maybe_text(row, 12)?),
        reply: row.get_ref(13)?.as_str_or_null()?.map(MessageId::stored),
        usage: Usage {
            input_tokens: row.get::<_, i64>(14)? as u64,
            output_tokens: row.get::<_, i64>(15)? as u64,
            cost: row.get::<_, Option<i64>>(16)?.map(|cost| cost as u64),
        },
        queued_at: time(row, 17)?,
        started_at: maybe_time(row, 18)?,
        ended_at: maybe_time(row, 19)?,
        stop_requested: row.get(21)?,
    })
}

pub fn addressed(addressed: AddressedBy) -> i64 {
    match addressed {
        AddressedBy::Directly => 0,
        AddressedBy::ByPolicy => 1,
        AddressedBy::Unasked => 2,
    }
}

pub fn run_state(state: &RunState) -> (i64, Option<&str>) {
    match state {
        RunState::Queued => (0, None),
        RunState::Running => (1, None),
        RunState::Ended(outcome) => (run_outcome(outcome), outcome.reason()),
    }
}

pub fn run_outcome(outcome: &RunOutcome) -> i64 {
    match outcome {
        RunOutcome::Complete => 2,
        RunOutcome::Failed(_) => 3,
        RunOutcome::Cancelled => 4,
        RunOutcome::Interrupted => 5,
        RunOutcome::Refused(_) => 6,
    }
}

pub fn read_state(number: i64, reason: Option<Box<str>>) -> RunState {
    match number {
        0 => RunState::Queued,
        1 => RunState::Running,
        2 => RunState::Ended(RunOutcome::Complete),
        3 => RunState::Ended(RunOutcome::Failed(reason.unwrap_or_default())),
        4 => RunState::Ended(RunOutcome::Cancelled),
        5 => RunState::Ended(RunOutcome::Interrupted),
        _ => RunState::Ended(RunOutcome::Refused(reason.unwrap_or_default())),
    }
}
