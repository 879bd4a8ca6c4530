//! Commands on uploads.
