//! Commands on API keys, and their receipts.
