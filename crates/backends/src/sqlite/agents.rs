//! Converts agents and gateways between rows and model types.

use super::rows::{maybe_text, maybe_time, run, shared, text, time};
use parlor_engine::Fault;
use parlor_model::{Agent, AgentHost, AgentId, Device, Gateway, GatewayId, Payload, UserId, Visibility};
use rusqlite::types::FromSqlResult;
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;

pub const AGENT: &str = "id, owner, name, description, settings, created_at, gateway, kind, working_directory, \
     capabilities, model, slash_commands, mcp_servers, seen_at, visibility, shared_with";

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
         working_directory, capabilities, model, slash_commands, mcp_servers, seen_at, visibility, shared_with) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
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
fn settings(settings: &BTreeMap<Box<str>, Payload>) -> String {
    let list: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (&**key, &*value.0)).collect();
    serde_json::to_string(&list).expect("strings always serialise to JSON")
}

fn read_settings(json: &str) -> BTreeMap<Box<str>, Payload> {
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
