//! Commands on uploads, and their receipts.
