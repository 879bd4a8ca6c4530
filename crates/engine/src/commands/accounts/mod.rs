//! Commands on accounts and profiles.
