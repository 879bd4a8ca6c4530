//! Queries about routers, and their answers.
