//! Queries about agents' plans, and their answers.
