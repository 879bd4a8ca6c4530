//! Model access in request bodies: validates the base URL and seals the API key, for routers and service
//! agents.

use crate::App;
use crate::http::problem::Problem;
use parlor_model::SealedKey;
use parlor_model::command::ModelChanges;
use parlor_model::{ModelAccess, ModelApi};
use parlor_wire::agentim::rest::HIDDEN_KEY;

/// The model fields of a request body. `url` and `key` carry their JSON field name for error messages.
pub struct ModelForm<'a> {
    pub url: (&'static str, Option<&'a str>),
    pub key: (&'static str, Option<&'a Option<Box<str>>>),
    pub model: Option<Box<str>>,
    pub api: Option<ModelApi>,
}

impl ModelForm<'_> {
    pub fn access(self, app: &App) -> Result<ModelAccess, Problem> {
        let (field, url) = self.url;
        let base_url = self.address(app, url.ok_or(Problem::invalid(field, "is required"))?)?;
        Ok(ModelAccess {
            api: self.api.unwrap_or_default(),
            key: self.sealed(app, &base_url)?.flatten(),
            base_url,
            model: self.model.unwrap_or_default(),
        })
    }

    pub fn changes(self, app: &App, existing: &ModelAccess) -> Result<ModelChanges, Problem> {
        let base_url = self.url.1.map(|url| self.address(app, url)).transpose()?;
        // An unchanged URL is no change, so the key need not be sent again.
        let base_url = base_url.filter(|url| *url != existing.base_url);
        let key = self.sealed(app, base_url.as_ref().unwrap_or(&existing.base_url))?;
        Ok(ModelChanges {
            api: self.api,
            // A new URL requires a new key, unless the model has none.
            key: if base_url.is_some() && existing.key.is_none() { key.or(Some(None)) } else { key }.into(),
            base_url,
            model: self.model,
        })
    }

    fn address(&self, app: &App, url: &str) -> Result<Box<str>, Problem> {
        app.config.models.address(url).map_err(|rule| Problem::invalid(self.url.0, rule))
    }

    /// Seals the key for storage, bound to this base URL. `None` keeps the existing key, `Some(None)` removes
    /// it.
    fn sealed(&self, app: &App, base_url: &str) -> Result<Option<Option<SealedKey>>, Problem> {
        let (field, key) = self.key;
        let Some(key) = key.filter(|key| key.as_deref() != Some(HIDDEN_KEY)) else { return Ok(None) };
        let Some(key) = key.as_deref().map(str::trim).filter(|key| !key.is_empty()) else {
            return Ok(Some(None));
        };
        // The key is sent in an HTTP header, which allows visible ASCII only.
        if key.len() > 1000 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Problem::invalid(field, "must be at most 1000 visible ASCII characters"));
        }
        Ok(Some(Some(SealedKey(app.model_keys.close(base_url, key.as_bytes())))))
    }
}
