//! The REST API: shape and status of every endpoint, paging without gaps, search, and the permissions of room
//! roles.

mod agents;
mod arrangement;
mod history;
mod mail;
mod marks;
mod messages;
mod rooms;
mod search;
mod shapes;
mod tasks;
mod threads;
