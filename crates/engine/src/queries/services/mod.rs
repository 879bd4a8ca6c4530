//! Queries about services, which are models that answer as agents inside the hub.

mod get_service;
mod list_services;
