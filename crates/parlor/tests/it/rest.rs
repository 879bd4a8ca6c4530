//! The REST API: every endpoint's shape, histories without gaps, rooms and who may do what in them.

mod agents;
mod arrangement;
mod history;
mod marks;
mod messages;
mod rooms;
mod search;
mod shapes;
mod tasks;
mod threads;
