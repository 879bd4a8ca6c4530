//! The agents that admins define over the API: models that answer without a gateway of anybody's.

use super::in_process;
use crate::models::ModelClients;
use anyhow::Context;
use parlor_agents::gateway::{AgentSpec, Gateway};
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_model::{Answer, Caller, Query, Refusal, UserId};
use parlor_server::App;
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;

/// Hosts what is defined, for as long as the hub runs.
pub async fn run_loop(app: Arc<App>, models: Arc<ModelClients>, data: &Path) {
    if let Err(error) = host(&app, &models, &data.join("service-agents")).await {
        tracing::error!(error = format!("{error:#}"), "the service agents cannot be hosted");
    }
}

async fn host(app: &App, models: &ModelClients, directory: &Path) -> anyhow::Result<()> {
    let mut gateway = None;
    loop {
        let wanted = match wanted(app, models).await {
            Ok(wanted) => wanted,
            Err(refusal) => {
                tracing::warn!(?refusal, "the service agents cannot be looked up");
                tokio::time::sleep(in_process::RETRY_DELAY).await;
                continue;
            }
        };
        // Without an agent nothing is made on the disk.
        let gateway = match (&mut gateway, wanted.is_empty()) {
            (None, true) => {
                app.hub.services_changed().await;
                continue;
            }
            (Some(gateway), _) => gateway,
            (none, false) => {
                let (_, made) =
                    in_process::open(directory).context("cannot use the directory of the agents")?;
                none.insert(made)
            }
        };
        let owner = arrange(gateway, wanted);
        match owner {
            Some(owner) => in_process::connect(app, &owner, gateway, app.hub.services_changed()).await,
            None => app.hub.services_changed().await,
        }
    }
}

/// An agent that is to answer, and whose it is.
struct ServiceToHost {
    owner: UserId,
    plan: AgentSpec,
    kind: AgentKind,
}

async fn wanted(app: &App, models: &ModelClients) -> Result<Vec<ServiceToHost>, Refusal> {
    let Answer::Services(services) = app.hub.read(&Caller::OPERATOR, Query::Services).await? else {
        return Err(Refusal::Unavailable);
    };
    let mut wanted = Vec::new();
    for (agent, service) in services.into_iter().filter(|(_, service)| service.active) {
        let model = match models.model(&service) {
            Ok(model) => model,
            Err(reason) => {
                tracing::warn!(agent = &*agent.name, reason, "a service agent cannot answer");
                continue;
            }
        };
        let further = Map::from_iter([("model".to_owned(), json!(service.model.model))]);
        let agent_config =
            AgentConfig { kind: agent.host.kind.to_string(), extra: further, ..AgentConfig::default() };
        let plan = AgentSpec { id: agent.id, name: agent.name, agent_config };
        wanted.push(ServiceToHost { owner: agent.owner, plan, kind: AgentKind::Model(model) });
    }
    Ok(wanted)
}

/// Has the gateway host these and no others; gives the owner of one of them.
fn arrange(gateway: &mut Gateway, wanted: Vec<ServiceToHost>) -> Option<UserId> {
    let known: Vec<_> = wanted.iter().map(|one| one.plan.id.clone()).collect();
    gateway.keep_only(&known);
    let mut some_owner = None;
    for ServiceToHost { owner, plan, kind } in wanted {
        gateway.add_with_kind(plan, kind);
        some_owner.get_or_insert(owner);
    }
    some_owner
}
