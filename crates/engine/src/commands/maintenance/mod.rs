//! Commands on operating the hub.

mod append_noop;
mod record_backup;
