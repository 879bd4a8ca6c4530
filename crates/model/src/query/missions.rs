//! Queries about missions and idle prompts, and their answers.
