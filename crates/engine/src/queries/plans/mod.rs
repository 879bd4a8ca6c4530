//! Queries about agents' plans.

mod list_plans;
