//! Queries about mailboxes, routes and subscriptions, and their answers.
