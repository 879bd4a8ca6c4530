//! Queries about sign-ins and second factors.
