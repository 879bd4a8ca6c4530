//! Commands on tasks.
