//! Queries about sign-ins and second factors.

mod list_sign_ins;
