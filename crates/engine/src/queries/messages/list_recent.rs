//! Lists the newest message of each room of the caller, with the caller's unread counts.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRecent, Recent};
use parlor_model::{MemberId, Message, Scope};
use std::sync::Arc;

/// Maximum characters of a room's newest message in the room overview.
const MAX_PREVIEW_CHARS: usize = 1000;

impl Query for ListRecent {
    type Facts = Arc<AuthContext>;
    type Answer = Vec<Recent>;

    /// Allowed for every user.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut ReadView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.signed_in(Scope::Read)?)
    }

    fn answer(
        &self,
        caller: Arc<AuthContext>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Recent>, Fault> {
        let mut recent = Vec::new();
        for member in store.memberships(&MemberId::User(caller.user.id.clone()))? {
            recent.extend(store.recent(&member.room, &member)?.map(truncate_preview));
        }
        Ok(recent)
    }
}

fn truncate_preview(recent: Recent) -> Recent {
    match recent.message.text.char_indices().nth(MAX_PREVIEW_CHARS) {
        None => recent,
        Some((end, _)) => {
            let text = recent.message.text[..end].into();
            Recent { message: Arc::new(Message { text, ..Message::clone(&recent.message) }), ..recent }
        }
    }
}
