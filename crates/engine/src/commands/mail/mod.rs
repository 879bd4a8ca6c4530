//! Commands on mailboxes, routes and subscriptions.

pub mod subscriptions;
