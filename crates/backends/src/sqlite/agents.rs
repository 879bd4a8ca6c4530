//! Agents and gateways: reads, changes, and conversion between rows and model types.

use super::rows::{all, maybe_text, maybe_time, number, one, run, shared, text, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::AgentChange;
use parlor_engine::ports::ReadAgents;
use parlor_model::{
    Agent, AgentHost, AgentId, Device, Gateway, GatewayId, Payload, RoomId, UserId, Visibility,
};
use rusqlite::types::FromSqlResult;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;

impl<C: Sql> ReadAgents for SqlTables<C> {
    fn agent(&mut self, id: &AgentId) -> Result<Option<Agent>, Fault> {
        one(self.sql()?, &format!("SELECT {} FROM agents WHERE id = ?1", AGENT), &[&id.as_str()], agent)
    }

    fn agents_of(&mut self, owner: &UserId) -> Result<Vec<Agent>, Fault> {
        let query = format!("SELECT {} FROM agents WHERE owner = ?1 ORDER BY id", AGENT);
        all(self.sql()?, &query, &[&owner.as_str()], agent)
    }

    fn agents_in(&mut self, room: &RoomId) -> Result<Vec<AgentId>, Fault> {
        let query = "SELECT member FROM members WHERE room = ?1 AND kind = 1 ORDER BY member";
        all(self.sql()?, query, &[&room.as_str()], |row| Ok(AgentId::stored(row.get::<_, String>(0)?)))
    }

    fn agents_below(&mut self, id: &AgentId) -> Result<Vec<Agent>, Fault> {
        // Range scan over the prefix `id/`: `0` is the character after `/`.
        let query = format!("SELECT {} FROM agents WHERE id > ?1 AND id < ?2 ORDER BY id", AGENT);
        all(self.sql()?, &query, &[&format!("{id}/"), &format!("{id}0")], agent)
    }

    fn agents_near(&mut self, user: &UserId) -> Result<Vec<Agent>, Fault> {
        // CROSS JOIN fixes the join order: from the user's rooms to their agents, not from all agents in
        // rooms.
        let query = format!(
            "SELECT {} FROM agents WHERE owner <> ?1 AND id IN (SELECT b.member FROM members a \
             CROSS JOIN members b ON b.room = a.room AND b.kind = 1 WHERE a.kind = 0 AND a.member = ?1 \
             UNION SELECT id FROM agents WHERE {SHARED}) ORDER BY id",
            AGENT
        );
        all(self.sql()?, &query, &[&user.as_str()], agent)
    }

    fn agents_shared(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Agent>, Fault> {
        let query = format!(
            "SELECT {} FROM agents WHERE {SHARED} AND owner <> ?1 ORDER BY id LIMIT ?2 OFFSET ?3",
            AGENT
        );
        all(self.sql()?, &query, &[&user.as_str(), &number(limit), &number(offset)], agent)
    }

    fn gateway(&mut self, id: &GatewayId) -> Result<Option<Gateway>, Fault> {
        let query = format!("SELECT {} FROM gateways WHERE id = ?1", GATEWAY);
        one(self.sql()?, &query, &[&id.as_str()], gateway)
    }

    fn gateways(&mut self, owner: Option<&UserId>) -> Result<Vec<Gateway>, Fault> {
        let columns = GATEWAY;
        match owner {
            None => all(self.sql()?, &format!("SELECT {columns} FROM gateways ORDER BY id"), &[], gateway),
            Some(owner) => {
                let query = format!("SELECT {columns} FROM gateways WHERE owner = ?1 ORDER BY id");
                all(self.sql()?, &query, &[&owner.as_str()], gateway)
            }
        }
    }
}

pub fn apply(sql: &Connection, change: &AgentChange) -> Result<(), Fault> {
    match change {
        AgentChange::PutAgent(agent) => put(sql, agent)?,
        AgentChange::RemoveAgent(agent) => remove_agent(sql, agent)?,
        AgentChange::ReplaceAgent { old, new } => replace_agent(sql, old, new)?,
        AgentChange::PutGateway(gateway) => put_gateway(sql, gateway)?,
        AgentChange::RemoveGateway(gateway) => {
            run(sql, "DELETE FROM gateways WHERE id = ?1", &[&gateway.as_str()])?;
        }
    }
    Ok(())
}

/// Condition: the agent is shared with the user `?1`.
const SHARED: &str =
    "visibility <> 0 AND (visibility = 1 OR ?1 IN (SELECT value FROM json_each(shared_with)))";

fn remove_agent(sql: &Connection, agent: &AgentId) -> Result<(), Fault> {
    let steps = [
        "DELETE FROM subscriptions WHERE agent = ?1",
        "DELETE FROM sessions WHERE agent = ?1",
        "DELETE FROM dead_letters WHERE agent = ?1",
        "DELETE FROM deliveries WHERE agent = ?1",
        "DELETE FROM members WHERE kind = 1 AND member = ?1",
        "DELETE FROM runs WHERE agent = ?1",
        "DELETE FROM conversation_entries WHERE agent = ?1",
        "DELETE FROM plans WHERE agent = ?1",
        "DELETE FROM mission_agents WHERE agent = ?1",
        "DELETE FROM idle WHERE agent = ?1",
        "DELETE FROM turn_decisions WHERE agent = ?1",
        "DELETE FROM approvals WHERE agent = ?1",
        "DELETE FROM approval_rules WHERE agent = ?1",
        "DELETE FROM services WHERE agent = ?1",
        "DELETE FROM agents WHERE id = ?1",
    ];
    steps.iter().try_for_each(|step| run(sql, step, &[&agent.as_str()]).map(drop))
}

fn replace_agent(sql: &Connection, old: &AgentId, new: &AgentId) -> Result<(), Fault> {
    let mail = [
        "UPDATE sessions SET agent = ?2 WHERE agent = ?1",
        "UPDATE subscriptions SET agent = ?2 WHERE agent = ?1",
        "UPDATE dead_letters SET agent = ?2 WHERE agent = ?1",
        "UPDATE deliveries SET agent = ?2 WHERE agent = ?1",
        "UPDATE conversation_entries SET agent = ?2 WHERE agent = ?1",
    ];
    let rest = [
        "UPDATE runs SET agent = ?2 WHERE agent = ?1",
        "UPDATE approvals SET agent = ?2 WHERE agent = ?1",
        "UPDATE turn_decisions SET agent = ?2 WHERE agent = ?1",
        // Rows that conflict with a row of the new agent stay, and are removed with the old agent.
        "UPDATE OR IGNORE plans SET agent = ?2 WHERE agent = ?1",
        "UPDATE OR IGNORE mission_agents SET agent = ?2 WHERE agent = ?1",
        "UPDATE OR IGNORE idle SET agent = ?2 WHERE agent = ?1",
    ];
    let has_session = one(sql, "SELECT 1 FROM sessions WHERE agent = ?1", &[&new.as_str()], |_| Ok(()))?;
    let values: [&dyn rusqlite::ToSql; 2] = [&old.as_str(), &new.as_str()];
    for step in mail.into_iter().filter(|_| has_session.is_none()).chain(rest) {
        run(sql, step, &values)?;
    }
    remove_agent(sql, old)
}

pub const AGENT: &str = "id, owner, name, description, settings, created_at, gateway, kind, working_directory, \
     capabilities, model, slash_commands, mcp_servers, seen_at, visibility, shared_with, has_lasting_id";

pub fn agent(row: &Row<'_>) -> rusqlite::Result<Agent> {
    let json = |index: usize| -> rusqlite::Result<Option<Payload>> {
        Ok(row.get_ref(index)?.as_str_or_null()?.map(|json| Payload(json.into())))
    };
    Ok(Agent {
        id: AgentId::stored(shared(row, 0)?),
        owner: UserId::stored(shared(row, 1)?),
        name: text(row, 2)?,
        description: text(row, 3)?,
        settings: read_settings(row.get_ref(4)?.as_str()?),
        created_at: time(row, 5)?,
        host: AgentHost {
            gateway: row.get_ref(6)?.as_str_or_null()?.map(GatewayId::stored),
            kind: text(row, 7)?,
            working_directory: maybe_text(row, 8)?,
            capabilities: list(row.get_ref(9)?.as_str())?,
            model: maybe_text(row, 10)?,
            slash_commands: json(11)?,
            mcp_servers: json(12)?,
            seen_at: maybe_time(row, 13)?,
            has_lasting_id: row.get(16)?,
        },
        visibility: match row.get::<_, i64>(14)? {
            ALL => Visibility::All,
            LIST => {
                let people = list(row.get_ref(15)?.as_str())?;
                Visibility::List(people.into_iter().map(UserId::stored).collect())
            }
            _ => Visibility::Private,
        },
    })
}

const PRIVATE: i64 = 0;

const ALL: i64 = 1;

const LIST: i64 = 2;

pub fn put(sql: &Connection, agent: &Agent) -> Result<(), Fault> {
    let host = &agent.host;
    let (visibility, people): (_, &[UserId]) = match &agent.visibility {
        Visibility::Private => (PRIVATE, &[]),
        Visibility::All => (ALL, &[]),
        Visibility::List(people) => (LIST, people),
    };
    let people: Vec<&str> = people.iter().map(UserId::as_str).collect();
    run(
        sql,
        "INSERT OR REPLACE INTO agents (id, owner, name, description, settings, created_at, gateway, kind, \
         working_directory, capabilities, model, slash_commands, mcp_servers, seen_at, visibility, shared_with, \
         has_lasting_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        &[
            &agent.id.as_str(),
            &agent.owner.as_str(),
            &&*agent.name,
            &&*agent.description,
            &settings(&agent.settings),
            &agent.created_at.0,
            &host.gateway.as_ref().map(GatewayId::as_str),
            &&*host.kind,
            &host.working_directory.as_deref(),
            &texts(&host.capabilities),
            &host.model.as_deref(),
            &host.slash_commands.as_ref().map(|list| &*list.0),
            &host.mcp_servers.as_ref().map(|list| &*list.0),
            &host.seen_at.map(|time| time.0),
            &visibility,
            &texts(&people),
            &host.has_lasting_id,
        ],
    )
    .map(drop)
}

pub const GATEWAY: &str =
    "id, owner, hostname, platform, arch, runtime, ephemeral, connected_at, disconnected_at, dismissed";

pub fn gateway(row: &Row<'_>) -> rusqlite::Result<Gateway> {
    Ok(Gateway {
        id: GatewayId::stored(shared(row, 0)?),
        owner: UserId::stored(shared(row, 1)?),
        device: Device {
            hostname: text(row, 2)?,
            platform: text(row, 3)?,
            arch: text(row, 4)?,
            runtime: text(row, 5)?,
        },
        ephemeral: row.get(6)?,
        connected_at: time(row, 7)?,
        disconnected_at: maybe_time(row, 8)?,
        pending_removals: list(row.get_ref(9)?.as_str())?.into_iter().map(AgentId::stored).collect(),
    })
}

pub fn put_gateway(sql: &Connection, gateway: &Gateway) -> Result<(), Fault> {
    let Device { hostname, platform, arch, runtime } = &gateway.device;
    let pending_removals: Vec<&str> = gateway.pending_removals.iter().map(AgentId::as_str).collect();
    run(
        sql,
        "INSERT OR REPLACE INTO gateways VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            &gateway.id.as_str(),
            &gateway.owner.as_str(),
            &&**hostname,
            &&**platform,
            &&**arch,
            &&**runtime,
            &gateway.ephemeral,
            &gateway.connected_at.0,
            &gateway.disconnected_at.map(|time| time.0),
            &texts(&pending_removals),
        ],
    )
    .map(drop)
}

/// Encodes the settings as a JSON list of (key, value) strings. The values are opaque JSON and are not
/// parsed.
pub fn settings(settings: &BTreeMap<Box<str>, Payload>) -> String {
    let list: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (&**key, &*value.0)).collect();
    serde_json::to_string(&list).expect("strings always serialise to JSON")
}

pub fn read_settings(json: &str) -> BTreeMap<Box<str>, Payload> {
    let list: Vec<(String, String)> = serde_json::from_str(json).unwrap_or_default();
    list.into_iter().map(|(key, value)| (key.into(), Payload(value.into()))).collect()
}

fn texts<T: AsRef<str>>(texts: &[T]) -> String {
    let list: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    serde_json::to_string(&list).expect("strings always serialise to JSON")
}

fn list(json: FromSqlResult<&str>) -> rusqlite::Result<Vec<Box<str>>> {
    Ok(serde_json::from_str(json?).unwrap_or_default())
}
