//! Queries about API keys, and their answers.
