//! Commands on uploads.

mod add_upload;
pub mod avatars;
mod take_unreferenced_blobs;
