//! Queries about routers.
