//! Pages of messages within the answer budget.

use crate::queries::answer_budget::count_within_budget;
use parlor_model::Message;
use parlor_model::query::MessagePage;
use std::sync::Arc;

/// Expects up to `limit + 1` messages: the extra message shows that there are more.
pub fn page(mut messages: Vec<Arc<Message>>, limit: usize) -> MessagePage {
    let count = limit.min(count_within_budget(messages.iter().map(|message| message.length())));
    let more = messages.len() > count;
    messages.truncate(count);
    MessagePage { messages, more }
}
