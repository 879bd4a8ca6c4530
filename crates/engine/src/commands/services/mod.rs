//! Commands on services.
