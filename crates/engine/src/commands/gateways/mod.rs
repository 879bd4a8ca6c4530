//! Commands on gateways.
