//! Commands on uploads.

mod add_upload;
pub mod avatars;
mod take_unreferenced_blobs;

pub use add_upload::put_upload;
