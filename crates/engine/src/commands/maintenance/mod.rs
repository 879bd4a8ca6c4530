//! Commands on operating the hub.
