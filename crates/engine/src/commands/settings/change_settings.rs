//! Changes the hub's settings.

use crate::Limits;
use crate::changes::SettingsChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::ChangeSettings;
use parlor_model::{Edit, Event, Field, HubSettings, Refusal, SettingChanges};
use std::sync::Arc;

impl Command for ChangeSettings {
    /// The settings before the change.
    type Facts = HubSettings;
    type Receipt = Arc<HubSettings>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        if let Edit::Set(name) = &self.changes.name {
            field_errors.line(Field::HubName, name, 60);
        }
        let in_range =
            |value: &Edit<u32>, limit| value.new_value().is_none_or(|value| (1..=limit).contains(value));
        let failures = in_range(&self.changes.lockout_failures, 1000);
        field_errors.unless(failures, Field::LockoutFailures, "must be between 1 and 1000");
        let seconds = in_range(&self.changes.lockout_seconds, 30 * 86_400);
        field_errors.unless(seconds, Field::LockoutSeconds, "must be between a second and 30 days");
        field_errors.into_result()
    }

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<HubSettings, PermitError> {
        caller.site_admin()?;
        Ok(view.store.settings()?)
    }

    fn decide(
        self,
        before: HubSettings,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<HubSettings>, Refusal> {
        let settings = Arc::new(before.with(&self.changes));
        effects.change(SettingsChange::PutSettings(settings.clone()));
        if *settings != before {
            effects.publish(Event::SettingsChanged);
        }
        let detail = describe(&self.changes);
        effects.audit(Action::SettingsChanged, None, (!detail.is_empty()).then(|| detail.into()));
        Ok(settings)
    }
}

/// The changed settings, as the audit log names them.
fn describe(changes: &SettingChanges) -> String {
    fn describe<T: ToString>(name: &str, change: &Edit<T>) -> Option<String> {
        match change {
            Edit::Keep => None,
            Edit::Clear => Some(format!("{name}: as started")),
            Edit::Set(value) => Some(format!("{name}: {}", value.to_string())),
        }
    }
    let all = [
        describe("hubName", &changes.name),
        describe("invitations", &changes.invitations),
        describe("lockoutFailures", &changes.lockout_failures),
        describe("lockoutSeconds", &changes.lockout_seconds),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{AuditChange, Change};
    use crate::commands::test_fixtures::decide;

    /// Whether the change is published, and its detail in the audit log.
    fn published_and_recorded(changes: SettingChanges, before: HubSettings) -> (bool, Option<Box<str>>) {
        let (_, effects) = decide(ChangeSettings { changes }, before).unwrap();
        let [
            Change::Settings(SettingsChange::PutSettings(_)),
            Change::Audit(AuditChange::AppendAudit(entry)),
        ] = &effects.changes[..]
        else {
            panic!("the settings, then the audit entry: {:?}", effects.changes)
        };
        (!effects.events.is_empty(), entry.detail.clone())
    }

    #[test]
    fn only_a_real_change_is_published_and_every_request_is_recorded() {
        let before = HubSettings { name: Some("Den".into()), ..HubSettings::default() };
        let renamed = SettingChanges {
            name: Edit::Set("Attic".into()),
            lockout_seconds: Edit::Clear,
            ..SettingChanges::default()
        };
        let detail = "hubName: Attic; lockoutSeconds: as started";
        assert_eq!(published_and_recorded(renamed, before.clone()), (true, Some(detail.into())));
        let same = SettingChanges { name: Edit::Set("Den".into()), ..SettingChanges::default() };
        assert_eq!(published_and_recorded(same, before.clone()), (false, Some("hubName: Den".into())));
        assert_eq!(published_and_recorded(SettingChanges::default(), before), (false, None));
    }
}
