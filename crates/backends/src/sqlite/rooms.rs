//! Rooms and their members: reads, changes, and conversion between rows and model types.

use super::rows::{self, all, maybe_text, maybe_time, number, one, run, seq, shared, text, time};
use super::{Sql, SqlTables, search};
use parlor_engine::Fault;
use parlor_engine::changes::RoomChange;
use parlor_engine::ports::ReadRooms;
use parlor_model::{
    AgentId, AnswerPolicy, Frozen, Member, MemberId, Notifications, Room, RoomId, RoomKind, RoomPreferences,
    RoomRole, RouterId, UserId, mention,
};
use rusqlite::{Connection, Row};
use std::sync::Arc;

impl<C: Sql> ReadRooms for SqlTables<C> {
    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault> {
        one(self.sql()?, &format!("SELECT {} FROM rooms WHERE id = ?1", ROOM), &[&id.as_str()], room)
    }

    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault> {
        // Few rooms have a project root; the partial index `rooms_with_root` contains only those.
        let query = format!("SELECT {} FROM rooms WHERE project_root = ?1 ORDER BY id", ROOM);
        all(self.sql()?, &query, &[&root], room)
    }

    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault> {
        let query = format!("SELECT {} FROM rooms WHERE project_root IS NOT NULL ORDER BY id", ROOM);
        all(self.sql()?, &query, &[], room)
    }

    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault> {
        let query = format!("{} WHERE m.room = ?1 AND m.kind = ?2 AND m.member = ?3", MEMBERS);
        one(self.sql()?, &query, &[&room.as_str(), &member_kind(member), &member.as_str()], read_member)
    }

    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault> {
        let query = format!("{} WHERE m.room = ?1 ORDER BY m.place LIMIT ?2 OFFSET ?3", MEMBERS);
        all(self.sql()?, &query, &[&room.as_str(), &number(limit), &number(offset)], read_member)
    }

    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM members WHERE room = ?1", &[&room.as_str()])
    }

    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault> {
        let query = format!("{} WHERE m.kind = ?1 AND m.member = ?2 ORDER BY m.joined_at, m.room", MEMBERS);
        all(self.sql()?, &query, &[&member_kind(member), &member.as_str()], read_member)
    }

    fn has_member_named(&mut self, room: &RoomId, key: &str, except: &MemberId) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM members WHERE room = ?1 AND name_key = ?2 \
                     AND NOT (kind = ?3 AND member = ?4) LIMIT 1";
        let values: [&dyn rusqlite::ToSql; 4] =
            [&room.as_str(), &key, &member_kind(except), &except.as_str()];
        Ok(rows::one(self.sql()?, query, &values, |_| Ok(()))?.is_some())
    }

    fn names_in_rooms(&mut self) -> Result<Vec<(RoomId, MemberId, Box<str>)>, Fault> {
        let query = "SELECT room, kind, member, name FROM members WHERE name <> CASE kind \
                     WHEN 0 THEN (SELECT display_name FROM users WHERE id = members.member) \
                     ELSE (SELECT name FROM agents WHERE id = members.member) END \
                     ORDER BY room, kind, member";
        all(self.sql()?, query, &[], |row| {
            let member = member_id(row.get(1)?, shared(row, 2)?);
            Ok((RoomId::stored(shared(row, 0)?), member, text(row, 3)?))
        })
    }

    fn share_a_room(&mut self, first: &MemberId, second: &MemberId) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM members a JOIN members b ON b.room = a.room AND b.kind = ?3 AND b.member = ?4 \
                     WHERE a.kind = ?1 AND a.member = ?2 LIMIT 1";
        let values: [&dyn rusqlite::ToSql; 4] =
            [&member_kind(first), &first.as_str(), &member_kind(second), &second.as_str()];
        Ok(rows::one(self.sql()?, query, &values, |_| Ok(()))?.is_some())
    }

    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault> {
        let query = "SELECT DISTINCT b.member FROM members a JOIN members b ON b.room = a.room AND b.kind = 0 \
                     WHERE a.kind = 0 AND a.member = ?1 AND b.member <> ?1 ORDER BY b.member";
        all(self.sql()?, query, &[&user.as_str()], |row| Ok(UserId::stored(row.get::<_, String>(0)?)))
    }
}

pub fn apply(sql: &Connection, change: &RoomChange) -> Result<(), Fault> {
    match change {
        RoomChange::PutRoom(room) => {
            run(
                sql,
                "INSERT OR REPLACE INTO rooms VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
                &[
                    &room.id.as_str(),
                    &&*room.name,
                    &room_kind(room.kind),
                    &policy(room.policy),
                    &room.system_prompt.as_deref(),
                    &room_role(room.agent_command_role),
                    &room.created_by.as_str(),
                    &room.created_at.0,
                    &room.updated_at.0,
                    &room_role(room.approve_role),
                    &room.frozen.as_ref().map(|frozen| frozen.at.0),
                    &room.frozen.as_ref().and_then(|frozen| frozen.by.as_ref()).map(UserId::as_str),
                    &room.router.as_ref().map(RouterId::as_str),
                    &room.project_root.as_deref(),
                    &room.description.as_deref(),
                ],
            )?;
        }
        RoomChange::RemoveRoom(room) => remove_room(sql, room)?,
        RoomChange::PutMember(member) => {
            run(
                sql,
                "INSERT INTO members VALUES (?1, ?2, ?3, ?4, ?5, \
                 (SELECT coalesce(max(place), 0) + 1 FROM members WHERE room = ?1), ?6, ?7, \
                 ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
                 ON CONFLICT DO UPDATE SET role = ?4, joined_at = ?5, read_through = ?6, read_at = ?7, \
                 role_description = ?8, pinned_at = ?9, archived_at = ?10, cleared_at = ?11, \
                 cleared_through = ?12, notifications = ?13, name = ?14, name_key = ?15",
                &[
                    &member.room.as_str(),
                    &member_kind(&member.member),
                    &member.member.as_str(),
                    &room_role(member.role),
                    &member.joined_at.0,
                    &(member.read_through.0 as i64),
                    &member.read_at.map(|time| time.0),
                    &member.role_description.as_deref(),
                    &member.room_preferences.pinned_at.map(|time| time.0),
                    &member.room_preferences.archived_at.map(|time| time.0),
                    &member.room_preferences.cleared_at.map(|time| time.0),
                    &(member.room_preferences.cleared_through.0 as i64),
                    &notifications(member.room_preferences.notifications),
                    &&*member.name,
                    &&*mention::name_key(&member.name),
                ],
            )?;
        }
        RoomChange::RenameMember { room, member, name } => {
            let query = "UPDATE members SET name = ?4, name_key = ?5 \
                         WHERE room = ?1 AND kind = ?2 AND member = ?3";
            let key = mention::name_key(name);
            let values: [&dyn rusqlite::ToSql; 5] =
                [&room.as_str(), &member_kind(member), &member.as_str(), &&**name, &&*key];
            run(sql, query, &values)?;
        }
        RoomChange::RemoveMember(room, member) => {
            let query = "DELETE FROM members WHERE room = ?1 AND kind = ?2 AND member = ?3";
            run(sql, query, &[&room.as_str(), &member_kind(member), &member.as_str()])?;
        }
        RoomChange::MarkRead { room, user, through, at } => {
            run(
                sql,
                "UPDATE members SET read_through = max(read_through, ?3), read_at = ?4 \
                 WHERE room = ?1 AND kind = 0 AND member = ?2",
                &[&room.as_str(), &user.as_str(), &(through.0 as i64), &at.0],
            )?;
        }
    }
    Ok(())
}

fn remove_room(sql: &Connection, room: &RoomId) -> Result<(), Fault> {
    search::before_removal(sql, room)?;
    let steps = [
        "DELETE FROM revisions WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM deliveries WHERE seq IN (SELECT seq FROM messages WHERE room = ?1)",
        "DELETE FROM reactions WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM bookmarks WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM pins WHERE room = ?1",
        "DELETE FROM uploads WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM turns WHERE message IN (SELECT id FROM messages WHERE room = ?1)",
        "DELETE FROM runs WHERE room = ?1",
        "DELETE FROM plans WHERE room = ?1",
        "DELETE FROM mission_agents WHERE mission IN (SELECT id FROM missions WHERE room = ?1)",
        "DELETE FROM missions WHERE room = ?1",
        "DELETE FROM idle WHERE realm_kind = 0 AND realm = ?1",
        "DELETE FROM approvals WHERE room = ?1",
        "DELETE FROM approval_rules WHERE room = ?1",
        "DELETE FROM messages WHERE room = ?1",
        "DELETE FROM members WHERE room = ?1",
        "DELETE FROM room_invitations WHERE room = ?1",
        "DELETE FROM tasks WHERE room = ?1",
        "DELETE FROM rooms WHERE id = ?1",
    ];
    steps.iter().try_for_each(|step| run(sql, step, &[&room.as_str()]).map(drop))
}

pub const ROOM: &str = "id, name, kind, policy, system_prompt, agent_command_role, created_by, created_at, updated_at, approve_role, \
     frozen_at, frozen_by, router, project_root, description";

pub fn room(row: &Row<'_>) -> rusqlite::Result<Room> {
    Ok(Room {
        id: RoomId::stored(shared(row, 0)?),
        name: text(row, 1)?,
        kind: if row.get::<_, i64>(2)? == 1 { RoomKind::Private } else { RoomKind::Group },
        policy: match row.get::<_, i64>(3)? {
            2 => AnswerPolicy::All,
            1 => AnswerPolicy::Triage,
            _ => AnswerPolicy::Mention,
        },
        system_prompt: maybe_text(row, 4)?,
        agent_command_role: read_role(row.get(5)?),
        created_by: UserId::stored(shared(row, 6)?),
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
        approve_role: read_role(row.get(9)?),
        frozen: match maybe_time(row, 10)? {
            Some(at) => Some(Frozen { by: maybe_text(row, 11)?.map(UserId::stored), at }),
            None => None,
        },
        router: maybe_text(row, 12)?.map(RouterId::stored),
        project_root: maybe_text(row, 13)?,
        description: maybe_text(row, 14)?,
    })
}

pub fn policy(policy: AnswerPolicy) -> i64 {
    match policy {
        AnswerPolicy::Mention => 0,
        AnswerPolicy::Triage => 1,
        AnswerPolicy::All => 2,
    }
}

pub fn room_kind(kind: RoomKind) -> i64 {
    match kind {
        RoomKind::Group => 0,
        RoomKind::Private => 1,
    }
}

pub fn room_role(role: RoomRole) -> i64 {
    match role {
        RoomRole::Member => 0,
        RoomRole::Admin => 1,
        RoomRole::Owner => 2,
    }
}

pub fn read_role(role: i64) -> RoomRole {
    match role {
        2 => RoomRole::Owner,
        1 => RoomRole::Admin,
        _ => RoomRole::Member,
    }
}

/// Selects members with the current handle of the user or agent. Queries append their `WHERE` clause.
pub const MEMBERS: &str = "SELECT m.room, m.kind, m.member, m.role, \
     m.name, CASE m.kind WHEN 0 THEN (SELECT username FROM users WHERE id = m.member) \
     ELSE (SELECT id FROM agents WHERE id = m.member) END, \
     m.joined_at, m.read_through, m.read_at, m.role_description, m.pinned_at, m.archived_at, m.cleared_at, \
     m.cleared_through, m.notifications FROM members m ";

fn read_member(row: &Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member {
        room: RoomId::stored(shared(row, 0)?),
        member: member_id(row.get(1)?, shared(row, 2)?),
        role: read_role(row.get(3)?),
        role_description: maybe_text(row, 9)?,
        name: text(row, 4)?,
        handle: maybe_text(row, 5)?.unwrap_or_default(),
        joined_at: time(row, 6)?,
        read_through: seq(row, 7)?,
        read_at: maybe_time(row, 8)?,
        room_preferences: RoomPreferences {
            pinned_at: maybe_time(row, 10)?,
            archived_at: maybe_time(row, 11)?,
            cleared_at: maybe_time(row, 12)?,
            cleared_through: seq(row, 13)?,
            notifications: match row.get::<_, i64>(14)? {
                2 => Notifications::None,
                1 => Notifications::Mentions,
                _ => Notifications::All,
            },
        },
    })
}

pub fn notifications(notifications: Notifications) -> i64 {
    match notifications {
        Notifications::All => 0,
        Notifications::Mentions => 1,
        Notifications::None => 2,
    }
}

pub fn member_kind(member: &MemberId) -> i64 {
    match member {
        MemberId::User(_) => 0,
        MemberId::Agent(_) => 1,
    }
}

pub fn member_id(kind: i64, id: Arc<str>) -> MemberId {
    if kind == 0 { MemberId::User(UserId::stored(id)) } else { MemberId::Agent(AgentId::stored(id)) }
}
