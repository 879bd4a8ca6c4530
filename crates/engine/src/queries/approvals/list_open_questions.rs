//! Lists the open question sets in all rooms of the caller and in the sessions of the caller's agents.

use crate::permission::{CallerContext, PermitError};
use crate::ports::{OpenApprovalsOf, Snapshot};
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListOpenQuestions;
use parlor_model::{Approval, ApprovalKind, MemberId, Scope, UserId};

impl Query for ListOpenQuestions {
    type Facts = UserId;
    type Answer = Vec<Approval>;

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        Ok(caller.signed_in(Scope::Read)?.user.id.clone())
    }

    fn answer(
        &self,
        user: UserId,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Approval>, Fault> {
        let mut open = Vec::new();
        for member in store.memberships(&MemberId::User(user.clone()))? {
            open.extend(store.open_approvals(OpenApprovalsOf::Room(&member.room))?);
        }
        open.extend(store.open_approvals(OpenApprovalsOf::Owner(&user))?);
        open.retain(|approval| approval.subject.kind() == ApprovalKind::Questions);
        Ok(open)
    }
}
