//! Invitations to a project: links with which one user joins it.

use super::{Project, role_name};
use crate::time::iso;
use parlor_model::{RoomInvitation, RoomRole};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Body of `POST /api/projects/{id}/invites`.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewJaibberInvite)]
#[serde(rename_all = "camelCase")]
pub struct NewInvite {
    /// `admin` or `member`. Default: `member`.
    #[schema(example = "member")]
    pub role: Option<Box<str>>,
    /// Lifetime in hours. Default: 168, which is seven days.
    pub expires_in_hours: Option<u32>,
}

/// An open invitation to a project.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = JaibberInvite)]
#[serde(rename_all = "camelCase")]
pub struct Invite {
    pub id: String,
    pub project_id: String,
    /// `admin` or `member`.
    pub role: &'static str,
    /// `null` if the secret of the hub was replaced since.
    #[schema(required)]
    pub token: Option<String>,
    /// User id of its creator.
    pub created_by: String,
    #[schema(format = DateTime)]
    pub created_at: String,
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl Invite {
    pub fn of(invitation: &RoomInvitation, token: Option<String>) -> Self {
        Self {
            id: invitation.id.as_str().into(),
            project_id: invitation.room.as_str().into(),
            role: role_name(invitation.role),
            token,
            created_by: invitation.created_by.as_str().into(),
            created_at: iso(invitation.created_at),
            expires_at: iso(invitation.expires_at),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = JaibberInviteList)]
pub struct InviteList {
    pub invites: Vec<Invite>,
}

/// Answer to `POST /api/projects/{id}/invites`. `invites` contains the new invitation only.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberInviteAnswer)]
pub struct InviteAnswer {
    pub invite: Invite,
    pub invites: Vec<Invite>,
}

/// Answer to `GET /api/invites/project/{token}`: the project before the caller joins it.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberInvitedProject)]
#[serde(rename_all = "camelCase")]
pub struct InvitedProject {
    pub project_id: String,
    pub project_name: String,
    #[schema(required)]
    pub description: Option<String>,
    /// `admin` or `member`.
    pub role: &'static str,
    #[schema(format = DateTime)]
    pub expires_at: String,
}

impl InvitedProject {
    pub fn of(invitation: &RoomInvitation, room: &parlor_model::Room) -> Self {
        Self {
            project_id: room.id.as_str().into(),
            project_name: room.name.to_string(),
            description: room.description.as_deref().map(Into::into),
            role: role_name(invitation.role),
            expires_at: iso(invitation.expires_at),
        }
    }
}

/// Answer to `POST /api/invites/project/{token}/accept`.
#[derive(Serialize, ToSchema)]
#[schema(as = JaibberJoinedProject)]
#[serde(rename_all = "camelCase")]
pub struct JoinedProject<'a> {
    pub project_id: &'a str,
    pub project: Project<'a>,
}

impl<'a> JoinedProject<'a> {
    pub fn of(room: &'a parlor_model::Room, role: RoomRole) -> Self {
        Self { project_id: room.id.as_str(), project: Project::of(room, role, None) }
    }
}
