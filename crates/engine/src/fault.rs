//! What went wrong on our side: opaque to callers, logged once where it is handled.

use std::fmt;

#[derive(Debug)]
pub struct Fault {
    context: &'static str,
    source: Box<dyn std::error::Error + Send + Sync>,
    pub severity: Severity,
}

/// What the hub may do after a fault of its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The write was undone cleanly; a later one may succeed (a full disk).
    Transient,
    /// What is on disk is no longer known (a failed fsync, an I/O error): nothing may be acknowledged
    /// until a restart has read the disk anew.
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
