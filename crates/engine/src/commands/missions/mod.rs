//! Commands on missions and idle prompts.
