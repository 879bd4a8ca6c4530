//! Commands on messages, and their receipts.
