//! Subjects and details of audit entries about rooms and their members.

use parlor_model::audit::{Subject, SubjectKind};
use parlor_model::{Member, MemberId, RoomId, RoomRole};

/// A room as the audit log names it: only members may know the name of a room.
pub fn room_subject(room: &RoomId) -> Option<Subject> {
    Some(Subject { kind: SubjectKind::Room, id: room.as_str().into(), name: None })
}

pub fn member_subject(member: &Member) -> Option<Subject> {
    let kind = match &member.member {
        MemberId::User(_) => SubjectKind::User,
        MemberId::Agent(_) => SubjectKind::Agent,
    };
    Some(Subject { kind, id: member.member.as_str().into(), name: Some(member.handle.clone()) })
}

/// Detail of an entry about a member of a room, with the member's role.
pub fn in_room_as(room: &RoomId, role: RoomRole) -> Option<Box<str>> {
    Some(format!("in room {room}, as {}", role.as_str()).into())
}
