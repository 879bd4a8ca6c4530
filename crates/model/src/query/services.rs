//! Queries about services, and their answers.
