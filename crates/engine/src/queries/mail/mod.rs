//! Queries about mailboxes, routes and subscriptions.
