//! What whoever runs a hub relies on.

mod logs;
