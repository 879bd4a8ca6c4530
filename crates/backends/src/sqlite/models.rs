//! Models: routers and services: reads, changes, and conversion between rows and model types.

use super::rows::{all, maybe_text, one, run, shared, text, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::ModelChange;
use parlor_engine::ports::{ReadAgents, ReadModels};
use parlor_model::{Agent, AgentId, ModelAccess, ModelApi, Router, RouterId, SealedKey, Service, UserId};
use rusqlite::{Connection, Row};

impl<C: Sql> ReadModels for SqlTables<C> {
    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault> {
        let query = format!("SELECT {} FROM routers WHERE id = ?1", ROUTER);
        one(self.sql()?, &query, &[&id.as_str()], router)
    }

    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault> {
        let query =
            format!("SELECT {} FROM routers WHERE shared OR created_by = ?1 ORDER BY created_at, id", ROUTER);
        all(self.sql()?, &query, &[&user.as_str()], router)
    }

    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault> {
        let query = format!("SELECT {} FROM services s WHERE s.agent = ?1", SERVICE);
        one(self.sql()?, &query, &[&agent.as_str()], service)
    }

    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault> {
        let query = format!(
            "SELECT {} FROM services s JOIN agents a ON a.id = s.agent ORDER BY a.created_at, a.id",
            SERVICE
        );
        let mut found = Vec::new();
        for service in all(self.sql()?, &query, &[], service)? {
            found.extend(self.agent(&service.agent)?.map(|agent| (agent, service)));
        }
        Ok(found)
    }
}

pub fn apply(sql: &Connection, change: &ModelChange) -> Result<(), Fault> {
    match change {
        ModelChange::PutRouter(router) => put_router(sql, router)?,
        ModelChange::RemoveRouter(id) => {
            run(sql, "UPDATE rooms SET router = NULL WHERE router = ?1", &[&id.as_str()])?;
            run(sql, "DELETE FROM routers WHERE id = ?1", &[&id.as_str()])?;
        }
        ModelChange::PutService(service) => put_service(sql, service)?,
    }
    Ok(())
}

pub const ROUTER: &str = "id, name, shared, api, base_url, model, key, created_by, created_at, updated_at";

pub const SERVICE: &str = "s.agent, s.active, s.api, s.base_url, s.model, s.key, s.fallback, s.instructions, \
     s.most_tokens, s.updated_at";

pub fn router(row: &Row<'_>) -> rusqlite::Result<Router> {
    Ok(Router {
        id: RouterId::stored(shared(row, 0)?),
        name: text(row, 1)?,
        shared: row.get(2)?,
        model: access(row, 3)?,
        created_by: UserId::stored(shared(row, 7)?),
        created_at: time(row, 8)?,
        updated_at: time(row, 9)?,
    })
}

pub fn service(row: &Row<'_>) -> rusqlite::Result<Service> {
    Ok(Service {
        agent: AgentId::stored(shared(row, 0)?),
        active: row.get(1)?,
        model: access(row, 2)?,
        fallback: maybe_text(row, 6)?,
        instructions: maybe_text(row, 7)?,
        most_tokens: row.get(8)?,
        updated_at: time(row, 9)?,
    })
}

/// Reads model access from four columns, starting at `first`.
fn access(row: &Row<'_>, first: usize) -> rusqlite::Result<ModelAccess> {
    Ok(ModelAccess {
        api: if row.get::<_, i64>(first)? == 1 { ModelApi::Anthropic } else { ModelApi::OpenAi },
        base_url: text(row, first + 1)?,
        model: text(row, first + 2)?,
        key: row.get_ref(first + 3)?.as_blob_or_null()?.map(|key| SealedKey(key.into())),
    })
}

fn number_of(api: ModelApi) -> i64 {
    match api {
        ModelApi::OpenAi => 0,
        ModelApi::Anthropic => 1,
    }
}

pub fn put_router(sql: &Connection, router: &Router) -> Result<(), Fault> {
    run(
        sql,
        "INSERT OR REPLACE INTO routers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            &router.id.as_str(),
            &&*router.name,
            &router.shared,
            &number_of(router.model.api),
            &&*router.model.base_url,
            &&*router.model.model,
            &router.model.key.as_ref().map(|key| &*key.0),
            &router.created_by.as_str(),
            &router.created_at.0,
            &router.updated_at.0,
        ],
    )?;
    Ok(())
}

pub fn put_service(sql: &Connection, service: &Service) -> Result<(), Fault> {
    run(
        sql,
        "INSERT OR REPLACE INTO services VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            &service.agent.as_str(),
            &service.active,
            &number_of(service.model.api),
            &&*service.model.base_url,
            &&*service.model.model,
            &service.model.key.as_ref().map(|key| &*key.0),
            &service.fallback.as_deref(),
            &service.instructions.as_deref(),
            &service.most_tokens,
            &service.updated_at.0,
        ],
    )?;
    Ok(())
}
