//! Commands on agents, and their receipts.
