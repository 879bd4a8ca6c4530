//! Exchanges a refresh token for a new one.

use crate::audit;
use crate::changes::CredentialChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::{RefreshSignIn, Refreshed, SignedIn};
use parlor_model::{Event, RefreshToken, Refusal, SignIn, User};
use std::sync::Arc;

pub struct Facts {
    token: RefreshToken,
    sign_in: SignIn,
    user: Arc<User>,
}

impl Command for RefreshSignIn {
    /// `None` if the token is unknown, or if its sign-in or its account no longer exists.
    type Facts = Option<Facts>;
    type Receipt = Refreshed;

    /// Allowed for every caller: the command carries the token, which `decide` checks.
    fn permit(
        &self,
        _caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Option<Facts>, PermitError> {
        let Some(token) = view.store.refresh_token(&self.token)? else { return Ok(None) };
        let Some(sign_in) = view.store.sign_in(&token.sign_in)? else { return Ok(None) };
        let user = view.user(&sign_in.user)?;
        Ok(user.map(|user| Facts { token, sign_in, user }))
    }

    /// Within the grace period the previous token is accepted too, as long as its successor was not used: a
    /// reloaded page may never have received the answer. Any older token indicates theft and ends the whole
    /// sign-in.
    fn decide(self, facts: Option<Facts>, effects: &mut EffectsBuilder<'_>) -> Result<Refreshed, Refusal> {
        let Facts { token, mut sign_in, user } = facts.ok_or(Refusal::TokenRevoked)?;
        let is_newest = token.generation == sign_in.generation;
        // The grace period counts from the exchange, not from the last use; otherwise it could be extended for
        // ever.
        let in_grace =
            token.generation + 1 == sign_in.generation && effects.now < sign_in.used_at.plus(self.grace);
        if !is_newest && !in_grace {
            effects.change(CredentialChange::EndSignIn(sign_in.id.clone()));
            effects.publish(Event::SignInEnded { user: user.id.clone(), sign_in: sign_in.id });
            let detail = Some("the sign-in was ended".into());
            effects.audit(Action::TokenReused, Some(audit::user(&user)), detail);
            return Ok(Refreshed::FamilyRevoked);
        }
        if sign_in.expires_at <= effects.now {
            return Err(Refusal::TokenRevoked);
        }
        if is_newest {
            sign_in.generation += 1;
            sign_in.used_at = effects.now;
            sign_in.expires_at = self.expires_at;
        }
        let sign_in = Arc::new(sign_in);
        effects.change(CredentialChange::PutSignIn(sign_in.clone(), self.next));
        Ok(Refreshed::SignedIn(SignedIn { user, sign_in }))
    }
}
