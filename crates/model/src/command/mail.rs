//! Commands on mailboxes, routes and subscriptions, and their receipts.
