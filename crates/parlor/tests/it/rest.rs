//! The REST API: every endpoint's shape, histories without gaps, rooms and who may do what in them.

mod history;
mod messages;
mod rooms;
mod shapes;
