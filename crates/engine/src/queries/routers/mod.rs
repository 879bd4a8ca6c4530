//! Queries about routers, which are models that select the agents that answer an unaddressed message.

mod get_own_router;
mod list_routers;
mod may_create_router;
