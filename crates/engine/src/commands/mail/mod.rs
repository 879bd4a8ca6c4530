//! Commands on mailboxes, routes and subscriptions.
