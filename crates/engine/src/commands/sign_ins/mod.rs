//! Commands on sign-ins and second factors.

mod confirm_second_factor;
mod create_sign_in;
mod end_other_sign_ins;
mod end_sign_in;
mod offer_second_factor;
mod record_failed_sign_in;
mod refresh_sign_in;
mod remove_second_factor;
mod second_factor;
