//! Models that the hub asks by itself: how it reaches them, and what it asks.
//!
//! Owns: which addresses people may name. Those of the internet, and those that whoever runs the hub allows.

use crate::instance;
use crate::settings::Settings;
use anyhow::Context;
use parlor_agents::kinds::model::{Dialect, Endpoint, Key, Model};
use parlor_agents::outbound::{self, AddressPolicy, AddressRejected, Client};
use parlor_model::{ModelAccess, ModelApi, Service};
use parlor_server::{MODEL_KEYS, Models, Seal};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use url::Url;

/// For a word or two, where nobody waits for it in a room.
const PATIENCE: Duration = Duration::from_secs(8);

pub struct ModelClients {
    keys: Seal,
    /// `host:port`, as in an address.
    allowed: Vec<String>,
    /// Built when they are first used: reading the certificates of the system takes a while, and most hubs ask no model.
    public: LazyLock<Client>,
    everywhere: LazyLock<Client>,
    /// Who decides where a room has nobody of its own.
    triage: Option<Arc<Endpoint>>,
    /// For who decides.
    pub patience: Duration,
}

impl ModelClients {
    pub fn new(settings: &Settings) -> anyhow::Result<Arc<Self>> {
        let everywhere: LazyLock<Client> = LazyLock::new(|| outbound::client(AddressPolicy::Everywhere));
        let triage = match (&settings.triage_url, &settings.triage_model) {
            (Some(url), Some(model)) => {
                let key = settings.triage_key.as_ref();
                let key = key
                    .map(|key| Key::new(key.expose()).context("triage_key cannot be a key"))
                    .transpose()?;
                // The word of whoever runs the hub: a model on the same machine is as good as any.
                let base = outbound::address(url.as_str(), AddressPolicy::Everywhere)
                    .context("triage_url cannot be used")?;
                let dialect = settings.triage_api.dialect();
                Some(Arc::new(Endpoint::through(Client::clone(&everywhere), dialect, base, key, model)))
            }
            _ => None,
        };
        Ok(Arc::new(Self {
            keys: Seal::new(&instance::token_secret(settings)?, MODEL_KEYS),
            allowed: settings.allowed_endpoints.clone(),
            public: LazyLock::new(|| outbound::client(AddressPolicy::Public)),
            everywhere,
            triage,
            patience: settings.triage_timeout,
        }))
    }

    pub fn triage(&self) -> Option<&Arc<Endpoint>> {
        self.triage.as_ref()
    }

    /// A model that somebody named. What was allowed then may not be any more.
    pub fn endpoint(&self, model: &ModelAccess) -> Result<Endpoint, &'static str> {
        let (base, address_policy) =
            self.checked(&model.base_url).map_err(|_| "its address is not allowed")?;
        let key = match &model.key {
            None => None,
            Some(sealed) => {
                let opened = self.keys.open(&model.base_url, &sealed.0);
                let key = opened.and_then(|key| Key::new(std::str::from_utf8(&key).ok()?));
                Some(key.ok_or("its key cannot be read any more: give it again")?)
            }
        };
        let client = match address_policy {
            AddressPolicy::Public => &self.public,
            AddressPolicy::Everywhere => &self.everywhere,
        };
        let dialect = match model.api {
            ModelApi::OpenAi => Dialect::OpenAi,
            ModelApi::Anthropic => Dialect::Anthropic,
        };
        Ok(Endpoint::through(Client::clone(client), dialect, base, key, &model.model))
    }

    /// What answers as an agent.
    pub fn model(&self, service: &Service) -> Result<Model, &'static str> {
        let mut first = self.endpoint(&service.model)?;
        first.most_tokens = service.most_tokens;
        let second = service.fallback.as_deref().map(|model| first.with_model(model));
        Ok(Model { first, second, instructions: service.instructions.clone() })
    }

    fn checked(&self, text: &str) -> Result<(Url, AddressPolicy), AddressRejected> {
        let url = outbound::address(text, AddressPolicy::Everywhere)?;
        let place = url.host_str().zip(url.port_or_known_default());
        let is_allowed = place.is_some_and(|(host, port)| self.allowed.contains(&format!("{host}:{port}")));
        let address_policy = if is_allowed { AddressPolicy::Everywhere } else { AddressPolicy::Public };
        Ok((outbound::address(text, address_policy)?, address_policy))
    }
}

impl Models for ModelClients {
    fn address(&self, text: &str) -> Result<Box<str>, &'static str> {
        match self.checked(text) {
            Ok((url, _)) => Ok(url.as_str().into()),
            Err(barred) => Err(barred.rule()),
        }
    }

    fn probe(&self, model: ModelAccess) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        let endpoint = self.endpoint(&model);
        Box::pin(async move {
            let answer = endpoint?.ask_briefly("Answer with the word YES.", "Are you there?", PATIENCE).await;
            answer.map(drop).map_err(|endpoint_error| endpoint_error.to_string())
        })
    }
}
