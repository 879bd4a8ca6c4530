//! Commands on agents.
