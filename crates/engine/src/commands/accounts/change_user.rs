//! Changes an account.

use super::account_changes::{ProfileRooms, change_account};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use crate::{Limits, audit};
use parlor_model::audit::Action;
use parlor_model::command::{ChangeUser, UserChanges};
use parlor_model::{Edit, EntityKind, Field, Refusal, SiteRole, User};
use std::sync::Arc;

pub struct Facts {
    user: Arc<User>,
    /// Rooms of the user.
    rooms: ProfileRooms,
    /// Number of site admins.
    admins: u64,
}

impl Command for ChangeUser {
    type Facts = Facts;
    type Receipt = Arc<User>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let (changes, mut field_errors) = (&self.changes, FieldErrors::default());
        if let Some(name) = &changes.display_name {
            field_errors.line(Field::DisplayName, name, 100);
        }
        if changes.max_connections == Edit::Set(0) {
            field_errors.add(Field::MaxConnections, "must be at least 1");
        }
        let few = changes.hears.as_ref().is_none_or(|patterns| patterns.len() <= 100);
        field_errors.unless(few, Field::Hears, "at most 100");
        field_errors.into_result()
    }

    /// Allowed for site admins and the operator. API keys may not set passwords: a program could sign in with
    /// one and escape its scopes.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.site_admin()?;
        if self.changes.password_hash.is_some() && !caller.is_operator() {
            caller.person()?;
        }
        let user = view.user(&self.user)?.ok_or(Refusal::NotFound(EntityKind::User))?;
        let rooms = ProfileRooms::load(&user, self.changes.display_name.as_deref(), view)?;
        Ok(Facts { user, rooms, admins: view.store.admins()? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<User>, Refusal> {
        let before = facts.user.role;
        let is_demoted = before == SiteRole::Admin && self.changes.role == Some(SiteRole::User);
        if is_demoted && facts.admins <= 1 {
            return Err(Refusal::LastOneRequired(EntityKind::User));
        }
        let user = change_account(User::clone(&facts.user), self.changes.clone(), facts.rooms, effects);
        audit_changes(self.changes, before, &user, effects);
        Ok(user)
    }
}

/// Records the changes in the audit log: a change of role or password gets its own record, so that it can be
/// searched for.
fn audit_changes(changes: UserChanges, before: SiteRole, user: &User, effects: &mut EffectsBuilder<'_>) {
    let subject = || Some(audit::user(user));
    if before != user.role {
        let detail = format!("from {} to {}", before.as_str(), user.role.as_str());
        effects.audit(Action::RoleChanged, subject(), Some(detail.into()));
    }
    if changes.password_hash.is_some() {
        effects.audit(Action::PasswordChanged, subject(), None);
    }
    let rest = UserChanges { role: None, password_hash: None, ..changes };
    if rest != UserChanges::default() {
        effects.audit(Action::UserChanged, subject(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::user;
    use crate::commands::test_fixtures::{audited, decide};

    fn facts(role: SiteRole, admins: u64) -> Facts {
        Facts { user: Arc::new(User { role, ..user("ann") }), rooms: ProfileRooms::default(), admins }
    }

    fn change(changes: UserChanges) -> ChangeUser {
        ChangeUser { user: user("ann").id, changes }
    }

    #[test]
    fn the_last_admin_stays_an_admin() {
        let demotion = || change(UserChanges { role: Some(SiteRole::User), ..Default::default() });
        let refused = decide(demotion(), facts(SiteRole::Admin, 1)).map(|(user, _)| user);
        assert_eq!(refused, Err(Refusal::LastOneRequired(EntityKind::User)));
        assert!(decide(demotion(), facts(SiteRole::Admin, 2)).is_ok());
        assert!(decide(demotion(), facts(SiteRole::User, 1)).is_ok());
    }

    #[test]
    fn changes_of_role_and_password_have_their_own_audit_entries() {
        let all = UserChanges {
            display_name: Some("Ann".into()),
            role: Some(SiteRole::Admin),
            password_hash: Some("new".into()),
            ..Default::default()
        };
        let (_, effects) = decide(change(all), facts(SiteRole::User, 1)).unwrap();
        let expected = [Action::RoleChanged, Action::PasswordChanged, Action::UserChanged];
        assert_eq!(audited(&effects), expected);
        let same_role = UserChanges { role: Some(SiteRole::User), ..Default::default() };
        let (_, effects) = decide(change(same_role), facts(SiteRole::User, 1)).unwrap();
        assert_eq!(audited(&effects), []);
    }
}
