//! Hosts that come back to a turn, and those that come too late.

use super::desk::{LinkId, Resumed};
use super::host::Order;
use super::hosting::{Finished, Voice};
use crate::Hub;
use parlor_model::{AgentId, Outcome, Refusal, RoomId, RunId, RunState, Thing};

impl Hub {
    /// A host goes on with a turn: it is told how far it was heard, or that the turn is over.
    pub async fn resume(
        &self,
        link: LinkId,
        agent: &AgentId,
        room: &RoomId,
        run: &RunId,
    ) -> Result<(), Refusal> {
        // A turn that began a moment ago is known a moment later.
        self.caught_up().await;
        let (host, resumed) = {
            let mut desk = self.turns().desk();
            desk.seated(agent, link).ok_or(Refusal::NotFound(Thing::Agent))?;
            (desk.host(link), desk.resume(agent, run))
        };
        let Some(host) = host else { return Ok(()) };
        match resumed {
            Resumed::GoesOn => {
                let heard = self.switchboard().heard(run);
                host.tell(&Order::Resumed { agent, room, run, heard });
            }
            Resumed::Ending => {}
            Resumed::Unknown => {
                let outcome = self.outcome(agent, room, run).await?;
                host.tell(&Order::Ended { agent, room, run, outcome: &outcome });
            }
        }
        Ok(())
    }

    /// A host ends a turn that is over. What it has to say is said once if the turn was given up.
    pub(super) async fn after_the_end(&self, voice: Voice<'_>, finished: Finished) -> Result<(), Refusal> {
        let Voice { link, agent, room, run: Some(run), .. } = voice else { return Ok(()) };
        if self.turns().desk().resume(agent, run) != Resumed::Unknown {
            return Ok(());
        }
        let outcome = self.outcome(agent, room, run).await?;
        if outcome == Outcome::Interrupted && finished.outcome != Outcome::Interrupted {
            self.late(voice, finished, Some(run.clone())).await?;
        }
        let host = self.turns().desk().host(link);
        if let Some(host) = host {
            host.tell(&Order::Ended { agent, room, run, outcome: &outcome });
        }
        Ok(())
    }

    /// How a turn of this agent ended. One that there never was, or that is somebody else's, is told alike.
    async fn outcome(&self, agent: &AgentId, room: &RoomId, run: &RunId) -> Result<Outcome, Refusal> {
        let id = run.clone();
        let found = self.look(move |_, store| store.run(&id)).await?;
        let own = found.filter(|run| run.agent == *agent && run.room == *room);
        Ok(match own.map(|run| run.state) {
            Some(RunState::Ended(outcome)) => outcome,
            _ => Outcome::Cancelled,
        })
    }
}
