//! Changes the caller's own password.

use super::account_changes::{ProfileRooms, change_account};
use crate::audit;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::{ChangePassword, UserChanges};
use parlor_model::{Refusal, User};
use std::sync::Arc;

impl Command for ChangePassword {
    type Facts = Arc<AuthContext>;
    type Receipt = Arc<User>;

    /// Allowed for every user, but not for API keys.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut WriterView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.person()?)
    }

    fn decide(
        self,
        caller: Arc<AuthContext>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<User>, Refusal> {
        if caller.user.password_hash != self.verified_password_hash {
            return Err(Refusal::WrongCredentials);
        }
        let changes = UserChanges { password_hash: Some(self.password_hash), ..Default::default() };
        let user = change_account(User::clone(&caller.user), changes, ProfileRooms::default(), effects);
        effects.audit(Action::PasswordChanged, Some(audit::user(&user)), None);
        Ok(user)
    }
}
