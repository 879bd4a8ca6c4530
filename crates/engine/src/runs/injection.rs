//! What is said to an agent while it is at work, on its way into the turn that it is in.

use super::driver::RETRY_DELAY;
use super::host::HostCommand;
use super::scheduler::{GatewayConnectionId, InjectionOffer};
use crate::Hub;
use parlor_model::{AgentId, Caller, Command, EntityKind, Message, Refusal, RoomId, RunId};
use std::sync::Arc;

/// What an agent says that it can do, where it takes more while it is at work.
pub(super) const INJECT_CAPABILITY: &str = "inject";

impl Hub {
    /// Offers what waits to turns that can take it.
    pub(super) async fn offer_injections(&self) {
        let offers = self.turns().desk().offers();
        for offer in offers {
            // What cannot be read now, or is gone, is looked at again when it is its turn.
            if let Ok(Some(message)) = self.said(&offer).await {
                let scheduler = self.turns().desk();
                // Told while nobody can end it, as with every turn.
                if scheduler.stands(&offer) {
                    let InjectionOffer { host, agent, room, run, added, .. } = &offer;
                    host.send(&HostCommand::Inject { agent, room, run, added, message: &message });
                }
            }
        }
    }

    async fn said(&self, offer: &InjectionOffer) -> Result<Option<Arc<Message>>, Refusal> {
        let id = offer.message.clone();
        self.read_snapshot(move |_, store| store.message(&id)).await
    }

    /// An agent has what was said to it meanwhile: that waits no longer. Told again, it changes nothing.
    pub async fn injection_accepted(
        &self,
        link: GatewayConnectionId,
        agent: &AgentId,
        room: &RoomId,
        run: &RunId,
        added: &RunId,
    ) -> Result<(), Refusal> {
        self.turns().desk().agent_on_connection(agent, link).ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let (into, of) = (run.clone(), (agent.clone(), room.clone()));
        let own = self.read_snapshot(move |_, store| {
            Ok(store.run(&into)?.is_some_and(|run| (run.agent, run.room) == of))
        });
        if !own.await? {
            return Err(Refusal::NotFound(EntityKind::Run));
        }
        let join = Command::MergeRun { run: added.clone(), into: run.clone() };
        // What the host says next may be the end of that turn, upon which this one would begin.
        while let Err(Refusal::Unavailable) = self.execute(&Caller::OPERATOR, join.clone()).await
            && !self.is_closing()
        {
            // The disk is full: there is no news to wait for.
            tokio::time::sleep(RETRY_DELAY).await;
        }
        self.wait_until_caught_up().await;
        self.turns().desk().mark_alive(agent, Some(room));
        Ok(())
    }
}
