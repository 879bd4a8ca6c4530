//! Commands on the hub's settings and the audit log, and their receipts.
