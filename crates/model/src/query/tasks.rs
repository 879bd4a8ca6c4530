//! Queries about tasks, and their answers.
