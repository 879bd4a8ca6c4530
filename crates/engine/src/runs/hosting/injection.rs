//! Injection: sends messages for a busy agent to its gateway, and merges accepted ones into the active run.

use super::super::driver::RETRY_DELAY;
use super::super::host::HostCommand;
use super::super::scheduler::{GatewayConnectionId, InjectionOffer};
use super::Hosting;
use parlor_model::command::MergeRun;
use parlor_model::{AgentId, Caller, EntityKind, Message, Refusal, RunContext, RunId};
use std::sync::Arc;

/// Capability of agents that accept messages during a run.
pub(super) const INJECT_CAPABILITY: &str = "inject";

impl Hosting {
    /// Offers a queued message to an active run that accepts injections.
    pub(in crate::runs) async fn offer_injection(&self, offer: InjectionOffer) {
        // A message that cannot be read or was deleted is handled when its own run starts.
        let Ok(Some(message)) = self.injected_message(&offer).await else { return };
        let scheduler = self.hub.scheduler().lock();
        // Sent under the scheduler lock, so that the active run cannot end before the message is sent.
        if scheduler.is_offer_valid(&offer) {
            let InjectionOffer { host, agent, context, run, added, .. } = offer;
            host.send(HostCommand::Inject { agent, context, run, added, message });
        }
    }

    async fn injected_message(&self, offer: &InjectionOffer) -> Result<Option<Arc<Message>>, Refusal> {
        let id = offer.message.clone();
        self.hub.read_snapshot(move |_, store| store.message(&id)).await
    }

    /// Merges the queued run of an injected message into the active run, after the agent accepted the
    /// message. Idempotent.
    pub async fn injection_accepted(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        context: &RunContext,
        run: &RunId,
        added: &RunId,
    ) -> Result<(), Refusal> {
        self.hub
            .scheduler()
            .lock()
            .agent_on_connection(agent, connection)
            .ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let (into, of) = (run.clone(), (agent.clone(), context.clone()));
        let own = self.hub.read_snapshot(move |_, store| {
            Ok(store.run(&into)?.is_some_and(|run| (run.agent, run.place.context()) == of))
        });
        if !own.await? {
            return Err(Refusal::NotFound(EntityKind::Run));
        }
        let join = MergeRun { run: added.clone(), into: run.clone() };
        // Commit before the next frame is read: it may end the active run, and then the queued run would
        // start.
        while let Err(Refusal::Unavailable) = self.hub.execute(&Caller::OPERATOR, join.clone()).await
            && !self.hub.is_closing()
        {
            // The store is unavailable, for example because the disk is full, and no event reports its
            // recovery.
            tokio::time::sleep(RETRY_DELAY).await;
        }
        self.wait_until_caught_up().await?;
        self.hub.scheduler().lock().mark_alive(agent, Some(context));
        Ok(())
    }
}
