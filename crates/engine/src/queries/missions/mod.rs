//! Queries about missions and idle prompts.
