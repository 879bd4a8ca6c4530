//! Queries about mailboxes, routes and subscriptions.

mod list_dead_letters;
mod list_mail;
mod list_mailboxes;
mod list_new_mail;
mod list_subscriptions;
mod may_listen_to_mailbox;
