//! Marks all messages in all rooms of the caller as read.

use super::read_marks::mark_read;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::MarkAllRead;
use parlor_model::{MemberId, Refusal, RoomId, Scope, Seq};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    /// The rooms with unread messages, each with its newest message.
    unread: Vec<(RoomId, Seq)>,
}

impl Command for MarkAllRead {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for every user.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.signed_in(Scope::Write)?;
        let mut unread = Vec::new();
        for member in view.store.memberships(&MemberId::User(caller.user.id.clone()))? {
            let newest = view.store.newest_message(&member.room)?;
            let newest = newest.filter(|newest| *newest > member.read_through);
            unread.extend(newest.map(|newest| (member.room, newest)));
        }
        Ok(Facts { caller, unread })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        for (room, newest) in facts.unread {
            mark_read(room, &facts.caller.user, newest, effects);
        }
        Ok(())
    }
}
