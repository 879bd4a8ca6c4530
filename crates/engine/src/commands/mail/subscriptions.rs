//! Subscriptions that agents and their sessions add.

use crate::changes::MailChange;
use crate::effects::EffectsBuilder;
use crate::routing_index::RouteChange;
use parlor_model::{AgentId, Field, Mailbox, Path, Pattern, Refusal, Subscription, UserId};

/// Maximum number of patterns with `**` before the last segment, over all agents of one user. Matching such a
/// pattern is expensive even if it fails, and it is tried for every user's messages.
pub const MAX_GLOBSTAR_PATTERNS: usize = 1000;

/// The automatic subscription of every agent: its own address.
pub fn own_address(agent: &AgentId) -> Pattern {
    Pattern::stored(Path::of_agent(agent).as_str())
}

/// Adds a subscription. `globstar_patterns` is the number of patterns with `**` before the last segment that
/// the agents of the owner had before the command.
pub fn add_subscription(
    mailbox: &Mailbox,
    pattern: &Pattern,
    owner: &UserId,
    globstar_patterns: usize,
    effects: &mut EffectsBuilder<'_>,
) -> Result<Subscription, Refusal> {
    let added = effects.routes.iter();
    let added = added
        .filter(|change| matches!(change, RouteChange::Add { pattern, .. } if pattern.has_inner_globstar()));
    if pattern.has_inner_globstar() && globstar_patterns + added.count() >= MAX_GLOBSTAR_PATTERNS {
        let rule = "exceeds the limit of 1000 patterns per user with ** before the last segment";
        return Err(Refusal::invalid(Field::Pattern, rule));
    }
    let subscription = Subscription {
        agent: mailbox.agent.clone(),
        session: mailbox.session.clone(),
        pattern: pattern.clone(),
        added_at: effects.now,
    };
    effects.change(MailChange::PutSubscription(subscription.clone()));
    effects.routes.push(RouteChange::Add {
        pattern: pattern.clone(),
        mailbox: mailbox.clone(),
        owner: owner.clone(),
    });
    Ok(subscription)
}
