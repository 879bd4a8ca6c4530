//! Commands on services, and their receipts.
