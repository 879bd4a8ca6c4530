//! Queries about approvals and approval rules.

use crate::RoomId;
use serde::{Deserialize, Serialize};

/// Open approvals of a room, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListApprovals {
    pub room: RoomId,
}

/// Open question sets in all rooms of the caller and in the sessions of the caller's agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOpenQuestions;

/// Open approvals without a room, of the caller's agents, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOwnApprovals;

/// Approval rules of a room: tools that agents may use there without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListApprovalRules {
    pub room: RoomId,
}
