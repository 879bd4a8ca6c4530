//! Bodies of `/api/routers`: models that select which agents answer.

use super::{HIDDEN_KEY, ModelApi, given};
use crate::time::iso;
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Properties of a router. `name`, `llmBaseUrl` and `llmModel` are required for a new one.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RouterBody {
    pub name: Option<Box<str>>,
    /// Default: `personal`. All users may use a `global` router, which only admins create.
    #[schema(value_type = Option<RouterScope>)]
    #[cfg_attr(test, ts(as = "Option<RouterScope>"))]
    pub scope: Option<Box<str>>,
    /// API of the model. Default: `openai`.
    #[schema(value_type = Option<ModelApi>)]
    #[cfg_attr(test, ts(as = "Option<ModelApi>"))]
    pub llm_api: Option<Box<str>>,
    pub llm_base_url: Option<Box<str>>,
    /// `null` removes the key. A new `llmBaseUrl` requires the key to be sent again.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub llm_api_key: Option<Option<Box<str>>>,
    pub llm_model: Option<Box<str>>,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum RouterScope {
    Personal,
    Global,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Router<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub scope: RouterScope,
    pub llm_api: ModelApi,
    pub llm_base_url: &'a str,
    /// Asterisks if a key is set; the key itself is never returned.
    #[schema(required)]
    pub llm_api_key: Option<&'static str>,
    pub llm_model: &'a str,
    pub created_by_id: &'a str,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub updated_at: String,
}

impl<'a> From<&'a parlor_model::Router> for Router<'a> {
    fn from(router: &'a parlor_model::Router) -> Self {
        Self {
            id: router.id.as_str(),
            name: &router.name,
            scope: if router.shared { RouterScope::Global } else { RouterScope::Personal },
            llm_api: router.model.api.into(),
            llm_base_url: &router.model.base_url,
            llm_api_key: router.model.key.as_ref().map(|_| HIDDEN_KEY),
            llm_model: &router.model.model,
            created_by_id: router.created_by.as_str(),
            created_at: iso(router.created_at),
            updated_at: iso(router.updated_at),
        }
    }
}

/// Result of a test request to the model.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct RouterTest {
    pub success: bool,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub error: Option<String>,
}
