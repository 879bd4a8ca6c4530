//! REST routes of Jaibber clients: a room is a project, and every answer has the fields that those clients read.

pub mod accounts;
pub mod agents;
pub mod files;
pub mod invites;
pub mod messages;
pub mod names;
pub mod projects;
pub mod tasks;
pub mod tokens;

use crate::http::problem::{JaibberProblem, Problem};
use parlor_model::RoomId;

/// Maximum and default number of items of a page.
const MAX_PAGE: usize = 200;
const DEFAULT_PAGE: usize = 50;

fn project_id(id: &str) -> Result<RoomId, JaibberProblem> {
    RoomId::parse(id).map_err(|_| Problem::not_an_id().into())
}

fn page_limit(limit: Option<usize>) -> usize {
    limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)
}

fn invalid(field: &'static str, rule: &'static str) -> JaibberProblem {
    Problem::invalid(field, rule).into()
}
