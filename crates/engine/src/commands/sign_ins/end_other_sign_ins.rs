//! Ends all sign-ins of the caller except the one that the request was made with, and revokes the tokens of the
//! caller's agents.

use crate::audit;
use crate::changes::{AccountChange, CredentialChange};
use crate::commands::Command;
use crate::commands::accounts::revoke_agent_tokens;
use crate::effects::EffectsBuilder;
use crate::permission::{AuthContext, CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::EndOtherSignIns;
use parlor_model::{Event, Principal, Refusal, SignInId};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    others: Vec<SignInId>,
}

impl Command for EndOtherSignIns {
    type Facts = Facts;
    type Receipt = ();

    /// Users end their own sign-ins. Keys end none.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let person = caller.person()?;
        let current = match &caller.caller.principal {
            Principal::Person { sign_in, .. } => Some(sign_in),
            _ => None,
        };
        let now = view.now;
        let sign_ins = view.store.sign_ins(&person.user.id, now)?.into_iter().map(|sign_in| sign_in.id);
        let others = sign_ins.filter(|sign_in| Some(sign_in) != current).collect();
        Ok(Facts { caller: person, others })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { caller, others } = facts;
        let user = &caller.user;
        revoke_agent_tokens(user, effects);
        for sign_in in &others {
            effects.change(CredentialChange::EndSignIn(sign_in.clone()));
            effects.publish(Event::SignInEnded { user: user.id.clone(), sign_in: sign_in.clone() });
        }
        if !others.is_empty() {
            // One of the ended sign-ins may have offered a code that pairs another machine.
            effects.change(AccountChange::RemovePairing(user.id.clone()));
            let detail = format!("{} other sessions", others.len());
            effects.audit(Action::SignedOut, Some(audit::user(user)), Some(detail.into()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::{NOW, audited, auth, decide};

    #[test]
    fn each_ended_sign_in_is_published_and_all_are_one_audit_entry() {
        let others = vec![SignInId::stored("laptop"), SignInId::stored("tablet")];
        let ((), effects) = decide(EndOtherSignIns, Facts { caller: auth("ann"), others }).unwrap();
        let is_ended =
            |change: &&Change| matches!(change, Change::Credential(CredentialChange::EndSignIn(_)));
        let is_end = |event: &&parlor_model::LoggedEvent| matches!(event.event, Event::SignInEnded { .. });
        let ended = effects.changes.iter().filter(is_ended).count();
        assert_eq!((ended, effects.events.iter().filter(is_end).count()), (2, 2));
        assert_eq!(audited(&effects), [Action::SignedOut]);
        let removes_pairing =
            |change: &Change| matches!(change, Change::Account(AccountChange::RemovePairing(_)));
        assert!(effects.changes.iter().any(removes_pairing));
    }

    #[test]
    fn without_other_sign_ins_only_the_tokens_of_agents_are_revoked() {
        let facts = Facts { caller: auth("ann"), others: Vec::new() };
        let ((), effects) = decide(EndOtherSignIns, facts).unwrap();
        let [Change::Account(AccountChange::PutUser(user))] = &effects.changes[..] else {
            panic!("{:?}", effects.changes)
        };
        assert_eq!(user.agent_tokens_valid_from, NOW);
        assert!(matches!(&effects.events[..], [event] if matches!(event.event, Event::UserChanged { .. })));
    }
}
