//! Records a failed sign-in, and locks the account after too many of them.

use crate::audit;
use crate::changes::{AccountChange, AuditChange};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::{Action, AuditRecord};
use parlor_model::command::RecordFailedSignIn;
use parlor_model::{EntityKind, Refusal, User};
use std::sync::Arc;
use std::time::Duration;

/// Failures of one kind within this time are counted in one row of the audit log.
const FAILURE_GROUPING_WINDOW: Duration = Duration::from_secs(60 * 60);

pub struct Facts {
    /// `None` if no account has the given name.
    user: Option<Arc<User>>,
    /// Newest audit record of a failed sign-in for the same user, or for an unknown user name.
    failed_before: Option<AuditRecord>,
}

impl Command for RecordFailedSignIn {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for every caller: only the server submits this command, for callers that are not signed in.
    fn permit(&self, _caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let user = match &self.user {
            Some(user) => Some(view.user(user)?.ok_or(Refusal::NotFound(EntityKind::User))?),
            None => None,
        };
        Ok(Facts { user, failed_before: view.store.last_failed_sign_in(self.user.as_ref())? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Some(user) = facts.user else {
            // The name itself is never stored: it may be a password typed into the wrong field.
            audit_failure(None, "no such name", facts.failed_before, effects);
            return Ok(());
        };
        if user.is_locked(effects.now) {
            audit_failure(Some(&user), "while locked", facts.failed_before, effects);
            return Ok(());
        }
        let mut failed = User::clone(&user);
        failed.failed_sign_ins = failed.failed_sign_ins.saturating_add(1);
        if failed.failed_sign_ins >= self.lock_after {
            failed.failed_sign_ins = 0;
            failed.locked_until = Some(self.lock_until);
        }
        let locked = failed.is_locked(effects.now);
        effects.change(AccountChange::PutUser(Arc::new(failed)));
        let why = if self.second_factor { "wrong code" } else { "wrong password" };
        audit_failure(Some(&user), why, facts.failed_before, effects);
        if locked {
            effects.audit(Action::AccountLocked, Some(audit::user(&user)), None);
        }
        Ok(())
    }
}

/// Adds an audit record, or counts the failure in the record `before` if that is recent and of the same kind.
fn audit_failure(
    user: Option<&User>,
    why: &str,
    before: Option<AuditRecord>,
    effects: &mut EffectsBuilder<'_>,
) {
    let now = effects.now;
    let same = before.filter(|before| {
        let recent = now >= before.note.at && now < before.note.at.plus(FAILURE_GROUPING_WINDOW);
        before.note.detail.as_deref() == Some(why) && recent
    });
    match same {
        Some(before) => {
            let address = effects.caller.caller.address;
            effects.change(AuditChange::RepeatAudit { id: before.id, at: now, address });
        }
        None => effects.audit(Action::SignInFailed, user.map(audit::user), Some(why.into())),
    }
}
