//! Missions and idle prompts, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::MissionChange;
use parlor_engine::ports::ReadMissions;
use parlor_model::{AgentId, IdlePrompt, Mission, MissionId, MissionScope};
use std::cmp::Reverse;

impl ReadMissions for TablesView {
    fn mission(&mut self, id: &MissionId) -> Result<Option<Mission>, Fault> {
        Ok(self.tables.missions.get(id).cloned())
    }

    fn missions(&mut self, mission_scope: &MissionScope, limit: usize) -> Result<Vec<Mission>, Fault> {
        let in_scope =
            self.tables.missions.values().filter(|mission| mission.mission_scope == *mission_scope);
        let mut found: Vec<Mission> = in_scope.cloned().collect();
        found.sort_by_key(|mission| Reverse((mission.created_at, mission.id.clone())));
        found.truncate(limit);
        Ok(found)
    }

    fn missions_on(&mut self) -> Result<Vec<Mission>, Fault> {
        let on = self.tables.missions.values().filter(|mission| mission.is_on());
        Ok(sorted(on.cloned(), |mission| (mission.created_at, mission.id.clone())))
    }

    fn idle(&mut self, mission_scope: &MissionScope, agent: &AgentId) -> Result<Option<IdlePrompt>, Fault> {
        Ok(self.tables.idle.get(&(mission_scope.clone(), agent.clone())).cloned())
    }
}

impl Tables {
    pub fn apply_missions(&mut self, change: &MissionChange) {
        match change {
            MissionChange::PutMission(mission) => {
                self.missions.insert(mission.id.clone(), mission.as_ref().clone());
            }
            MissionChange::PutIdlePrompt { mission_scope, agent, idle } => {
                let key = (mission_scope.clone(), agent.clone());
                match idle {
                    Some(idle) => drop(self.idle.insert(key, idle.clone())),
                    None => drop(self.idle.remove(&key)),
                }
            }
        }
    }
}
