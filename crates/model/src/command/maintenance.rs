//! Commands on operating the hub, and their receipts.
