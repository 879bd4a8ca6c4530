//! Commands on uploads.

pub mod avatars;
