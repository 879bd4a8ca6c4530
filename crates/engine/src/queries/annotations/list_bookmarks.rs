//! Lists the caller's bookmarks.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::Scope;
use parlor_model::query::{BookmarkPage, ListBookmarks};
use std::sync::Arc;

impl Query for ListBookmarks {
    type Facts = Arc<AuthContext>;
    type Answer = BookmarkPage;

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
    ) -> Result<BookmarkPage, Fault> {
        // The extra bookmark shows that there are more.
        let mut bookmarks = store.bookmarks(&caller.user.id, self.before, self.limit + 1)?;
        let fitting = count_within_budget(bookmarks.iter().map(|(_, message)| message.length()));
        let count = fitting.min(self.limit);
        let more = bookmarks.len() > count;
        bookmarks.truncate(count);
        Ok(BookmarkPage { bookmarks, more })
    }
}
