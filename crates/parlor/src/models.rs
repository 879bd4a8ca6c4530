//! HTTP clients for the models that the hub itself sends requests to: triage, routers and service agents.
//!
//! Owns: the policy for endpoint addresses that users enter. Only public addresses are allowed, and those
//! that the operator lists in `allowed_endpoints`.

use crate::instance;
use crate::settings::Settings;
use anyhow::Context;
use parlor_agents::kinds::model::{Dialect, Endpoint, Key, Model};
use parlor_model::{ModelAccess, ModelApi, Service};
use parlor_outbound::{self as outbound, AddressPolicy, AddressRejected, Client};
use parlor_server::{MODEL_KEYS, Models, Seal};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use url::Url;

/// Timeout for the probe request of a model.
const PROBE_TIMEOUT: Duration = Duration::from_secs(8);

pub struct ModelClients {
    keys: Seal,
    /// Private endpoints that users may use, as `host:port` in the normalised form of a URL.
    allowed: Vec<String>,
    /// Client for public addresses only. Built on first use, because loading the system's certificates is
    /// slow and most hubs use no model.
    public: LazyLock<Client>,
    /// Client without address restrictions. Built on first use, like `public`.
    everywhere: LazyLock<Client>,
    /// Triage model of the hub, used in rooms without a router.
    triage: Option<Arc<Endpoint>>,
    /// Timeout for a triage decision.
    pub triage_timeout: Duration,
}

impl ModelClients {
    pub fn new(settings: &Settings) -> anyhow::Result<Arc<Self>> {
        let everywhere: LazyLock<Client> = LazyLock::new(|| outbound::client(AddressPolicy::Everywhere));
        let triage = match (&settings.triage_url, &settings.triage_model) {
            (Some(url), Some(model)) => {
                let key = settings.triage_key.as_ref();
                let key = key
                    .map(|key| Key::new(key.expose()).context("triage_key is not a valid key"))
                    .transpose()?;
                // The operator sets this address, so private addresses are allowed.
                let base = outbound::address(url.as_str(), AddressPolicy::Everywhere)
                    .context("triage_url is not a valid address")?;
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
            triage_timeout: settings.triage_timeout,
        }))
    }

    pub fn triage(&self) -> Option<&Arc<Endpoint>> {
        self.triage.as_ref()
    }

    /// Returns a client for a model that a user configured. Checks the address again, because
    /// `allowed_endpoints` may have changed since.
    pub fn endpoint(&self, model: &ModelAccess) -> Result<Endpoint, &'static str> {
        let (base, address_policy) =
            self.checked(&model.base_url).map_err(|_| "its address is not allowed")?;
        let key = match &model.key {
            None => None,
            Some(sealed) => {
                let opened = self.keys.open(&model.base_url, &sealed.0);
                let key = opened.and_then(|key| Key::new(std::str::from_utf8(&key).ok()?));
                Some(key.ok_or("its stored key cannot be decrypted: enter the key again")?)
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

    /// Returns the model of a service agent, with its fallback model.
    pub fn model(&self, service: &Service) -> Result<Model, &'static str> {
        let mut first = self.endpoint(&service.model)?;
        first.most_tokens = service.most_tokens;
        let second = service.fallback.as_deref().map(|model| first.with_model(model));
        Ok(Model { first, second, instructions: service.instructions.clone() })
    }

    fn checked(&self, text: &str) -> Result<(Url, AddressPolicy), AddressRejected> {
        let url = outbound::address(text, AddressPolicy::Everywhere)?;
        let authority = url.host_str().zip(url.port_or_known_default());
        let is_allowed =
            authority.is_some_and(|(host, port)| self.allowed.contains(&format!("{host}:{port}")));
        let address_policy = if is_allowed { AddressPolicy::Everywhere } else { AddressPolicy::Public };
        Ok((outbound::address(text, address_policy)?, address_policy))
    }
}

impl Models for ModelClients {
    fn address(&self, text: &str) -> Result<Box<str>, &'static str> {
        match self.checked(text) {
            Ok((url, _)) => Ok(url.as_str().into()),
            Err(rejected) => Err(rejected.rule()),
        }
    }

    fn probe(&self, model: ModelAccess) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        let endpoint = self.endpoint(&model);
        Box::pin(async move {
            let answer =
                endpoint?.ask_briefly("Answer with the word YES.", "Are you there?", PROBE_TIMEOUT).await;
            answer.map(drop).map_err(|endpoint_error| endpoint_error.to_string())
        })
    }
}
