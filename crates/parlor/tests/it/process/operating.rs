//! Tests of operating a hub: backups, `parlor doctor`, logs, certificates, traces.

pub mod backup;
mod doctor;
mod kills;
mod logs;
mod tls;
mod traces;
