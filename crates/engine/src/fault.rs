//! `Fault`: an internal error. Opaque to callers, and logged once where it is handled.

use std::fmt;

#[derive(Debug)]
pub struct Fault {
    context: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
    pub severity: Severity,
}

/// Severity of a fault of the store, which decides whether the hub may continue to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The write was rolled back cleanly; a later one may succeed (for example, after a full disk).
    Transient,
    /// The state on disk is unknown (a failed fsync, an I/O error): the hub acknowledges no command until a
    /// restart has read the disk again.
    Permanent,
}

impl Fault {
    pub fn new(
        context: &'static str,
        severity: Severity,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { context, source: source.into(), severity }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.context, self.source)
    }
}

impl std::error::Error for Fault {}
