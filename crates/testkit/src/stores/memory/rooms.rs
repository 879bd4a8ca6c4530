//! Rooms and their members, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::RoomChange;
use parlor_engine::ports::ReadRooms;
use parlor_model::{Member, MemberId, MessageId, MissionScope, Room, RoomId, UserId, mention};
use std::collections::BTreeSet;

impl ReadRooms for TablesView {
    fn room(&mut self, id: &RoomId) -> Result<Option<Room>, Fault> {
        Ok(self.tables.rooms.get(id).cloned())
    }

    fn rooms_about(&mut self, root: &str) -> Result<Vec<Room>, Fault> {
        let rooms = self.tables.rooms.rows().filter(|room| room.project_root.as_deref() == Some(root));
        Ok(sorted(rooms.cloned(), |room| room.id.clone()))
    }

    fn rooms_with_root(&mut self) -> Result<Vec<Room>, Fault> {
        let rooms = self.tables.rooms.rows().filter(|room| room.project_root.is_some());
        Ok(sorted(rooms.cloned(), |room| room.id.clone()))
    }

    fn member(&mut self, room: &RoomId, member: &MemberId) -> Result<Option<Member>, Fault> {
        let found = self.tables.members.get(&(room.clone(), member.clone()));
        Ok(found.map(|member| self.tables.named(member)))
    }

    fn members(&mut self, room: &RoomId, limit: usize, offset: usize) -> Result<Vec<Member>, Fault> {
        Ok(self.tables.members_of(room).skip(offset).take(limit).collect())
    }

    fn member_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        Ok(self.tables.members_of(room).count())
    }

    fn memberships(&mut self, member: &MemberId) -> Result<Vec<Member>, Fault> {
        let theirs = self.tables.members.rows().filter(|row| row.member == *member);
        Ok(sorted(theirs.map(|row| self.tables.named(row)), |row| (row.joined_at, row.room.clone())))
    }

    fn has_member_named(&mut self, room: &RoomId, key: &str, except: &MemberId) -> Result<bool, Fault> {
        let has_key = |member: &Member| *mention::name_key(&member.name) == *key;
        Ok(self.tables.members_of(room).any(|member| member.member != *except && has_key(&member)))
    }

    fn names_in_rooms(&mut self) -> Result<Vec<(RoomId, MemberId, Box<str>)>, Fault> {
        let own_name = |member: &MemberId| match member {
            MemberId::User(id) => self.tables.users.get(id).map(|user| user.display_name.clone()),
            MemberId::Agent(id) => self.tables.agents.get(id).map(|agent| agent.name.clone()),
        };
        let renamed =
            self.tables.members.rows().filter(|row| own_name(&row.member).is_some_and(|own| own != row.name));
        let names = renamed.map(|row| (row.room.clone(), row.member.clone(), row.name.clone()));
        Ok(sorted(names, |(room, member, _)| {
            (room.clone(), member.agent().is_some(), member.as_str().to_owned())
        }))
    }

    fn share_a_room(&mut self, first: &MemberId, second: &MemberId) -> Result<bool, Fault> {
        let mut rooms = self.tables.rooms.rows();
        Ok(rooms.any(|room| self.tables.in_room(&room.id, first) && self.tables.in_room(&room.id, second)))
    }

    fn peers(&mut self, user: &UserId) -> Result<Vec<UserId>, Fault> {
        let own = MemberId::User(user.clone());
        let members = self.tables.members.rows().filter(|member| self.tables.in_room(&member.room, &own));
        let people: BTreeSet<&UserId> = members.filter_map(|member| member.member.user()).collect();
        Ok(people.into_iter().filter(|other| *other != user).cloned().collect())
    }
}

impl Tables {
    pub fn apply_rooms(&mut self, change: &RoomChange) {
        match change {
            RoomChange::PutRoom(room) => self.rooms.put(room.id.clone(), room.as_ref().clone()),
            RoomChange::RemoveRoom(room) => self.remove_room(room),
            RoomChange::PutMember(member) => {
                let stored = Member { handle: "".into(), ..member.as_ref().clone() };
                self.members.put((member.room.clone(), member.member.clone()), stored);
            }
            RoomChange::RenameMember { room, member, name } => {
                if let Some(stored) = self.members.get_mut(&(room.clone(), member.clone())) {
                    stored.name = name.clone();
                }
            }
            RoomChange::RemoveMember(room, member) => self.members.remove(&(room.clone(), member.clone())),
            RoomChange::MarkRead { room, user, through, at } => {
                let key = (room.clone(), MemberId::User(user.clone()));
                if let Some(member) = self.members.get_mut(&key) {
                    member.read_through = member.read_through.max(*through);
                    member.read_at = Some(*at);
                }
            }
        }
    }

    pub fn remove_room(&mut self, room: &RoomId) {
        let messages: Vec<MessageId> = self.messages_in(room).map(|message| message.id.clone()).collect();
        for message in messages {
            self.erase(&message);
        }
        self.erased.retain(|_, (destination, _)| destination.room() != Some(room));
        self.members.retain(|(other, _)| other != room);
        self.remove_room_invitations(|invitation| invitation.room == *room);
        self.tasks.retain(|_, task| task.room != *room);
        self.remove_runs(|run| run.room() == Some(room));
        self.remove_approvals(|approval| approval.place.room() == Some(room));
        self.approval_rules.retain(|_, rule| rule.room != *room);
        self.plans.retain(|(of, _), _| of != room);
        self.missions.retain(|_, mission| mission.room != *room);
        self.idle.retain(|(mission_scope, _), _| *mission_scope != MissionScope::Room(room.clone()));
        self.rooms.remove(room);
    }
}
