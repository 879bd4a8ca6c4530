//! Queries about agents.

mod card;
mod get_agent;
mod get_agent_card;
mod list_agent_cards;
mod list_agents;
mod list_shared_agent_cards;
