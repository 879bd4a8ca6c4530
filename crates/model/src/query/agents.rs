//! Queries about agents, and their answers.
