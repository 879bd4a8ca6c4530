//! Commands on runs, and their receipts.
