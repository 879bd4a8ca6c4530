//! Queries about accounts and profiles, and their answers.
