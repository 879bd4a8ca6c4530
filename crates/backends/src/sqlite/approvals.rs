//! Approvals and approval rules: reads, changes, and conversion between rows and model types.

use super::rows::{all, from_json, json, maybe_text, maybe_time, one, run, shared, text, time};
use super::{Sql, SqlTables, runs};
use parlor_engine::Fault;
use parlor_engine::changes::ApprovalChange;
use parlor_engine::ports::{OpenApprovalsOf, ReadApprovals};
use parlor_model::{
    AgentId, Approval, ApprovalId, ApprovalRule, ApprovalSubject, Decider, Decision, GatewayId, InputDigest,
    Payload, RoomId, RunId, Time, UserId,
};
use rusqlite::{Connection, Row, ToSql};
use std::borrow::Cow;

impl<C: Sql> ReadApprovals for SqlTables<C> {
    fn approval(&mut self, id: &ApprovalId) -> Result<Option<Approval>, Fault> {
        let query = format!("SELECT {APPROVAL} FROM approvals WHERE id = ?1");
        one(self.sql()?, &query, &[&id.as_str()], approval)
    }

    fn approvals_called(&mut self, gateway: &GatewayId, request: &str) -> Result<Vec<Approval>, Fault> {
        let query =
            format!("SELECT {APPROVAL} FROM approvals WHERE gateway = ?1 AND request = ?2 ORDER BY place");
        all(self.sql()?, &query, &[&gateway.as_str(), &request], approval)
    }

    fn open_approvals(&mut self, of: OpenApprovalsOf<'_>) -> Result<Vec<Approval>, Fault> {
        let (condition, value) = match &of {
            OpenApprovalsOf::Everybodys => ("?1 = ''", ""),
            OpenApprovalsOf::Room(room) => ("room = ?1", room.as_str()),
            OpenApprovalsOf::Run(run) => ("run = ?1", run.as_str()),
            OpenApprovalsOf::Agent(agent) => ("agent = ?1", agent.as_str()),
            OpenApprovalsOf::Owner(owner) => ("owner = ?1 AND room IS NULL", owner.as_str()),
        };
        let query =
            format!("SELECT {APPROVAL} FROM approvals WHERE decision IS NULL AND {condition} ORDER BY place");
        all(self.sql()?, &query, &[&value], approval)
    }

    fn open_approval_count(&mut self) -> Result<usize, Fault> {
        let query = "SELECT count(*) FROM approvals WHERE decision IS NULL";
        Ok(one(self.sql()?, query, &[], |row| row.get::<_, i64>(0))?.unwrap_or_default() as usize)
    }

    fn approval_rule(
        &mut self,
        room: &RoomId,
        agent: &AgentId,
        tool: &str,
    ) -> Result<Option<ApprovalRule>, Fault> {
        let query = format!("SELECT {RULE} FROM approval_rules WHERE room = ?1 AND agent = ?2 AND tool = ?3");
        one(self.sql()?, &query, &[&room.as_str(), &agent.as_str(), &tool], rule)
    }

    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault> {
        let query = format!("SELECT {RULE} FROM approval_rules WHERE room = ?1 ORDER BY agent, tool");
        all(self.sql()?, &query, &[&room.as_str()], rule)
    }
}

pub fn apply(sql: &Connection, change: &ApprovalChange) -> Result<(), Fault> {
    match change {
        ApprovalChange::PutApproval(approval) => put(sql, approval)?,
        ApprovalChange::PutApprovalRule(rule) => put_rule(sql, rule)?,
        ApprovalChange::RemoveApprovalRule(rule) => remove_rule(sql, rule)?,
    }
    Ok(())
}

const APPROVAL: &str = "id, run, room, agent, agent_name, gateway, request, tool, input, digest, asked_at, \
     expires_at, decision, decider, decider_name, reason, decided_at, matter, answers, session, owner";

const RULE: &str = "room, agent, tool, decider, at";

/// Values of the column `decision`. They are stored on disk: never reuse one.
const ALLOWED: i64 = 0;

const ALLOWED_BY_RULE: i64 = 1;

const DENIED: i64 = 2;

const EXPIRED: i64 = 3;

const WITHDRAWN: i64 = 4;

const ANSWERED: i64 = 5;

/// Values of the column `matter`. They are stored on disk: never reuse one.
const TOOL: i64 = 0;

const QUESTIONS: i64 = 1;

pub fn put(sql: &Connection, approval: &Approval) -> Result<(), Fault> {
    let (decision, decider, reason) = match &approval.decision {
        None => (None, None, None),
        Some(Decision::Allowed { by }) => (Some(ALLOWED), Some(by), None),
        Some(Decision::AllowedByRule) => (Some(ALLOWED_BY_RULE), None, None),
        Some(Decision::Denied { by, reason }) => (Some(DENIED), Some(by), reason.as_deref()),
        Some(Decision::Answered { by, .. }) => (Some(ANSWERED), Some(by), None),
        Some(Decision::Expired) => (Some(EXPIRED), None, None),
        Some(Decision::Withdrawn) => (Some(WITHDRAWN), None, None),
    };
    let answers = match &approval.decision {
        Some(Decision::Answered { answers, .. }) => Some(json(answers)),
        _ => None,
    };
    let (matter, input) = match &approval.subject {
        ApprovalSubject::Tool(input) => (TOOL, Cow::Borrowed(&*input.0)),
        ApprovalSubject::Questions(questions) => (QUESTIONS, Cow::Owned(json(questions))),
    };
    let query = format!(
        "INSERT INTO approvals ({APPROVAL}) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21) \
         ON CONFLICT (id) DO UPDATE SET decision = ?13, decider = ?14, decider_name = ?15, reason = ?16, \
         decided_at = ?17, answers = ?19"
    );
    let (room, session, owner) = runs::place_columns(&approval.place);
    let values: [&dyn ToSql; 21] = [
        &approval.id.as_str(),
        &approval.run.as_str(),
        &room,
        &approval.agent.as_str(),
        &&*approval.agent_name,
        &approval.gateway.as_str(),
        &&*approval.request,
        &&*approval.tool,
        &input,
        &approval.digest.0,
        &approval.asked_at.0,
        &approval.expires_at.0,
        &decision,
        &decider.map(|by| by.user.as_str()),
        &decider.map(|by| &*by.name),
        &reason,
        &approval.decided_at.map(|time| time.0),
        &matter,
        &answers,
        &session,
        &owner,
    ];
    run(sql, &query, &values).map(drop)
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let by = || -> rusqlite::Result<Decider> {
        Ok(Decider { user: UserId::stored(shared(row, 13)?), name: text(row, 14)? })
    };
    Ok(Approval {
        id: ApprovalId::stored(shared(row, 0)?),
        run: RunId::stored(shared(row, 1)?),
        place: runs::place(row, 2, 19, 20)?,
        agent: AgentId::stored(shared(row, 3)?),
        agent_name: text(row, 4)?,
        gateway: GatewayId::stored(shared(row, 5)?),
        request: text(row, 6)?,
        tool: text(row, 7)?,
        subject: match row.get::<_, i64>(17)? {
            QUESTIONS => ApprovalSubject::Questions(from_json(row, 8)?),
            _ => ApprovalSubject::Tool(Payload(row.get_ref(8)?.as_str()?.into())),
        },
        digest: InputDigest(row.get(9)?),
        asked_at: time(row, 10)?,
        expires_at: time(row, 11)?,
        decision: match row.get::<_, Option<i64>>(12)? {
            None => None,
            Some(ALLOWED) => Some(Decision::Allowed { by: by()? }),
            Some(ALLOWED_BY_RULE) => Some(Decision::AllowedByRule),
            Some(DENIED) => Some(Decision::Denied { by: by()?, reason: maybe_text(row, 15)? }),
            Some(ANSWERED) => Some(Decision::Answered { by: by()?, answers: from_json(row, 18)? }),
            Some(EXPIRED) => Some(Decision::Expired),
            // Default deny: a decision unknown to this version, written by a later one, counts as withdrawn.
            Some(_) => Some(Decision::Withdrawn),
        },
        decided_at: maybe_time(row, 16)?,
    })
}

pub fn put_rule(sql: &Connection, rule: &ApprovalRule) -> Result<(), Fault> {
    let query = format!("INSERT OR REPLACE INTO approval_rules ({RULE}) VALUES (?1, ?2, ?3, ?4, ?5)");
    let values: [&dyn ToSql; 5] =
        [&rule.room.as_str(), &rule.agent.as_str(), &&*rule.tool, &rule.by.as_str(), &rule.at.0];
    run(sql, &query, &values).map(drop)
}

pub fn remove_rule(sql: &Connection, rule: &ApprovalRule) -> Result<(), Fault> {
    let query = "DELETE FROM approval_rules WHERE room = ?1 AND agent = ?2 AND tool = ?3";
    run(sql, query, &[&rule.room.as_str(), &rule.agent.as_str(), &&*rule.tool]).map(drop)
}

fn rule(row: &Row<'_>) -> rusqlite::Result<ApprovalRule> {
    Ok(ApprovalRule {
        room: RoomId::stored(shared(row, 0)?),
        agent: AgentId::stored(shared(row, 1)?),
        tool: text(row, 2)?,
        by: UserId::stored(shared(row, 3)?),
        at: time(row, 4)?,
    })
}

/// Deletes approvals decided before `oldest`. The audit log still records who decided them.
pub fn trim(sql: &Connection, oldest: Time) -> Result<(), Fault> {
    run(sql, "DELETE FROM approvals WHERE decided_at < ?1", &[&oldest.0]).map(drop)
}
