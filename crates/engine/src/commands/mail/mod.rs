//! Commands on mailboxes, routes and subscriptions.

mod acknowledge_mail;
mod clear_dead_letters;
mod import_mail;
mod publish;
pub mod reach;
mod receive_mail;
mod relay;
mod resend_dead_letter;
mod route;
pub mod sessions;
mod subscribe;
pub mod subscriptions;
mod unsubscribe;

pub use receive_mail::MAX_DELIVERY_ATTEMPTS;
