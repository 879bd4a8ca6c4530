//! Models: routers and services, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::ModelChange;
use parlor_engine::ports::ReadModels;
use parlor_model::{Agent, AgentId, RoomId, Router, RouterId, Service, UserId};

impl ReadModels for TablesView {
    fn router(&mut self, id: &RouterId) -> Result<Option<Router>, Fault> {
        Ok(self.tables.routers.get(id).cloned())
    }

    fn routers(&mut self, user: &UserId) -> Result<Vec<Router>, Fault> {
        let visible =
            self.tables.routers.values().filter(|router| router.shared || router.created_by == *user);
        let mut visible: Vec<Router> = visible.cloned().collect();
        visible.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(visible)
    }

    fn service(&mut self, agent: &AgentId) -> Result<Option<Service>, Fault> {
        Ok(self.tables.services.get(agent).cloned())
    }

    fn services(&mut self) -> Result<Vec<(Agent, Service)>, Fault> {
        let services = self.tables.services.values();
        let found = services.filter_map(|service| {
            let agent = self.tables.agents.get(&service.agent)?;
            Some((agent.clone(), service.clone()))
        });
        Ok(sorted(found, |(agent, _)| (agent.created_at, agent.id.clone())))
    }
}

impl Tables {
    pub fn apply_models(&mut self, change: &ModelChange) {
        match change {
            ModelChange::PutRouter(router) => {
                self.routers.insert(router.id.clone(), router.as_ref().clone());
            }
            ModelChange::RemoveRouter(id) => self.remove_router(id),
            ModelChange::PutService(service) => {
                self.services.insert(service.agent.clone(), service.as_ref().clone());
            }
        }
    }

    pub fn remove_router(&mut self, id: &RouterId) {
        self.routers.remove(id);
        let affected: Vec<RoomId> = self
            .rooms
            .rows()
            .filter(|room| room.router.as_ref() == Some(id))
            .map(|room| room.id.clone())
            .collect();
        for room in affected {
            if let Some(room) = self.rooms.get_mut(&room) {
                room.router = None;
            }
        }
    }
}
