//! Commands on routers, and their receipts.
