//! Commands on missions and idle prompts, and their receipts.
