//! Queries about messages, and their answers.
