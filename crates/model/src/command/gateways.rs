//! Commands on gateways, and their receipts.
