//! Queries about turns.

mod list_turns;
