//! Hosts service agents: models that admins define over the API, and that need no gateway of a user.

use super::in_process;
use crate::models::ModelClients;
use anyhow::Context;
use parlor_agents::gateway::{AgentSpec, Gateway};
use parlor_agents::kinds::{AgentConfig, AgentKind};
use parlor_model::query::ListServices;
use parlor_model::{Caller, Refusal, UserId};
use parlor_server::App;
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Hosts the defined service agents until the hub stops. When it returns, their runs have ended.
pub async fn run_loop(app: Arc<App>, models: Arc<ModelClients>, data: &Path, stop: watch::Receiver<bool>) {
    let directory = data.join("service-agents");
    let host = async |gateway: &mut _| host(&app, &models, &directory, gateway).await;
    if let Err(error) = in_process::host_until_stopped(host, stop).await {
        tracing::error!(error = format!("{error:#}"), "cannot host the service agents");
    }
}

async fn host(
    app: &App,
    models: &ModelClients,
    directory: &Path,
    gateway: &mut Option<Gateway>,
) -> anyhow::Result<()> {
    loop {
        let services = match active_services(app, models).await {
            Ok(services) => services,
            Err(refusal) => {
                tracing::warn!(?refusal, "cannot read the service agents");
                tokio::time::sleep(in_process::RETRY_DELAY).await;
                continue;
            }
        };
        // Without a service agent, no directory is created.
        let gateway = match (&mut *gateway, services.is_empty()) {
            (None, true) => {
                app.hub.services_changed().await;
                continue;
            }
            (Some(gateway), _) => gateway,
            (none, false) => {
                let (_, opened) =
                    in_process::open(directory).context("cannot open the directory of the service agents")?;
                none.insert(opened)
            }
        };
        let owner = sync_gateway(gateway, services);
        match owner {
            Some(owner) => in_process::connect(app, &owner, gateway, app.hub.services_changed()).await,
            None => tokio::select! {
                () = app.hub.services_changed() => {}
                () = gateway.idle() => {}
            },
        }
    }
}

/// An active service agent with its owner.
struct ServiceToHost {
    owner: UserId,
    spec: AgentSpec,
    kind: AgentKind,
}

async fn active_services(app: &App, models: &ModelClients) -> Result<Vec<ServiceToHost>, Refusal> {
    let services = app.hub.read(&Caller::OPERATOR, ListServices).await?;
    let mut active = Vec::new();
    for (agent, service) in services.into_iter().filter(|(_, service)| service.active) {
        let model = match models.model(&service) {
            Ok(model) => model,
            Err(reason) => {
                tracing::warn!(agent = &*agent.name, reason, "cannot host a service agent");
                continue;
            }
        };
        let extra = Map::from_iter([("model".to_owned(), json!(service.model.model))]);
        let agent_config = AgentConfig { kind: agent.host.kind.to_string(), extra, ..AgentConfig::default() };
        let spec = AgentSpec { id: agent.id, name: agent.name, agent_config };
        active.push(ServiceToHost { owner: agent.owner, spec, kind: AgentKind::Model(model) });
    }
    Ok(active)
}

/// Makes the gateway host exactly these agents. Returns the owner of the first one, in whose name it
/// connects.
fn sync_gateway(gateway: &mut Gateway, services: Vec<ServiceToHost>) -> Option<UserId> {
    let ids: Vec<_> = services.iter().map(|service| service.spec.id.clone()).collect();
    gateway.keep_only(&ids);
    let mut first_owner = None;
    for ServiceToHost { owner, spec, kind } in services {
        gateway.add_with_kind(spec, kind);
        first_owner.get_or_insert(owner);
    }
    first_owner
}
