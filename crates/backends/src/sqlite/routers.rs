//! Models that pick which agents answer, in their table.

use super::rows::{run, shared, text, time};
use parlor_engine::Fault;
use parlor_model::{ModelAccess, ModelApi, Router, RouterId, SealedKey, UserId};
use rusqlite::{Connection, Row};

pub const ROUTER: &str = "id, name, shared, api, base_url, model, key, created_by, created_at, updated_at";

pub fn router(row: &Row<'_>) -> rusqlite::Result<Router> {
    Ok(Router {
        id: RouterId::stored(shared(row, 0)?),
        name: text(row, 1)?,
        shared: row.get(2)?,
        model: ModelAccess {
            api: if row.get::<_, i64>(3)? == 1 { ModelApi::Anthropic } else { ModelApi::OpenAi },
            base_url: text(row, 4)?,
            model: text(row, 5)?,
            key: row.get_ref(6)?.as_blob_or_null()?.map(|key| SealedKey(key.into())),
        },
        created_by: UserId::stored(shared(row, 7)?),
        created_at: time(row, 8)?,
        updated_at: time(row, 9)?,
    })
}

pub fn put(sql: &Connection, router: &Router) -> Result<(), Fault> {
    let api = match router.model.api {
        ModelApi::OpenAi => 0,
        ModelApi::Anthropic => 1,
    };
    run(
        sql,
        "INSERT OR REPLACE INTO routers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            &router.id.as_str(),
            &&*router.name,
            &router.shared,
            &api,
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
