//! How a model is reached, as people write it down: its address and its key.

use crate::App;
use crate::http::problem::Problem;
use parlor_model::SealedKey;
use parlor_model::command::ModelChanges;
use parlor_model::{ModelAccess, ModelApi};
use parlor_wire::agentim::rest::HIDDEN_KEY;

/// A body with a model in it, and what its fields are called there.
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

    pub fn changes(self, app: &App, known: &ModelAccess) -> Result<ModelChanges, Problem> {
        let base_url = self.url.1.map(|url| self.address(app, url)).transpose()?;
        // The same once more is no change, and needs no key again.
        let base_url = base_url.filter(|url| *url != known.base_url);
        let key = self.sealed(app, base_url.as_ref().unwrap_or(&known.base_url))?;
        Ok(ModelChanges {
            api: self.api,
            // Without a key there is none to give again.
            key: if base_url.is_some() && known.key.is_none() { key.or(Some(None)) } else { key },
            base_url,
            model: self.model,
        })
    }

    fn address(&self, app: &App, url: &str) -> Result<Box<str>, Problem> {
        app.config.models.address(url).map_err(|rule| Problem::invalid(self.url.0, rule))
    }

    /// A key as it is kept: readable by this hub, for this address.
    fn sealed(&self, app: &App, base_url: &str) -> Result<Option<Option<SealedKey>>, Problem> {
        let (field, key) = self.key;
        let Some(key) = key.filter(|key| key.as_deref() != Some(HIDDEN_KEY)) else { return Ok(None) };
        let Some(key) = key.as_deref().map(str::trim).filter(|key| !key.is_empty()) else {
            return Ok(Some(None));
        };
        // As it must travel in a header.
        if key.len() > 1000 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Problem::invalid(field, "cannot be a key"));
        }
        Ok(Some(Some(SealedKey(app.model_keys.close(base_url, key.as_bytes())))))
    }
}
