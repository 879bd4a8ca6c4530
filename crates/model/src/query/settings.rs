//! Queries about the hub's settings and the audit log, and their answers.

use crate::audit::{AuditFilter, AuditRecord};
use serde::{Deserialize, Serialize};

/// The settings that admins changed at run time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetSettings;

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListAuditRecords {
    pub filter: AuditFilter,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditPage {
    pub records: Vec<AuditRecord>,
    /// Whether there are older records.
    pub more: bool,
}

/// Checks whether the caller may read the hub's metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MayReadMetrics;

/// Checks whether the caller may read the hub's limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaySeeLimits;
