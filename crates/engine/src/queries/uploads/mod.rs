//! Queries about uploads.

mod get_upload;
mod may_upload;
