//! The hub's settings, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::SettingsChange;
use parlor_engine::ports::ReadSettings;
use parlor_model::HubSettings;

impl ReadSettings for TablesView {
    fn settings(&mut self) -> Result<HubSettings, Fault> {
        Ok(self.tables.settings.clone())
    }
}

impl Tables {
    pub fn apply_settings(&mut self, change: &SettingsChange) {
        match change {
            SettingsChange::PutSettings(settings) => self.settings = settings.as_ref().clone(),
        }
    }
}
