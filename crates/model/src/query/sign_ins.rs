//! Queries about sign-ins and second factors, and their answers.
