//! Commands on accounts and profiles, and their receipts.
