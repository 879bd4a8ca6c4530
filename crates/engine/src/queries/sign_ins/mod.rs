//! Queries about sign-ins and second factors.

mod get_auth_context;
mod get_second_factor;
mod list_sign_ins;
