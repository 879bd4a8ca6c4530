//! Commands on tasks, and their receipts.
