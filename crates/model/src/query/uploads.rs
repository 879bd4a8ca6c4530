//! Queries about uploads, and their answers.
