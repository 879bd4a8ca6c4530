//! Sessions of agents: limits and creation.

use parlor_model::{AgentId, Field, Refusal, Session, SessionId, Time};

/// Maximum number of sessions of one agent.
pub const MAX_SESSIONS: usize = 1000;

/// A session with its id as the title, for an agent that has this number of sessions.
pub fn new_session(agent: &AgentId, id: &SessionId, count: usize, now: Time) -> Result<Session, Refusal> {
    if count >= MAX_SESSIONS {
        return Err(Refusal::invalid(Field::Session, "the agent has too many sessions"));
    }
    Ok(Session::new(agent.clone(), id.clone(), id.as_str(), now))
}
