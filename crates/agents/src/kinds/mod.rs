//! The kinds of agents that a gateway can host. Each plays turns in its own way; the list is closed.
//!
//! A kind is a file here with a type that has
//! `async fn play(&self, turn: &Turn, stage: &Stage) -> Ending` (many rooms at once, one turn in each),
//! `fn forget(&self, room: &RoomId)` (the session of that room is over) and
//! `async fn examine(&self) -> Vec<Finding>` (what `doctor` says of it).
