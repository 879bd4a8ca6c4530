//! Queries about runs, and their answers.
