//! Commands on the hub's settings and the audit log.

mod change_settings;
