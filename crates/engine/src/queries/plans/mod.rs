//! Queries about agents' plans.
