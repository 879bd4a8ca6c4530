//! Queries of the tools of agents.

mod list_reachable_agents;
mod may_use_tools;
mod resolve_recipient;
mod search_as_agent;
