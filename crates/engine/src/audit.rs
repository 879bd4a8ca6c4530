//! Derives the audit records of a decided command, which are written in its transaction.
//!
//! Owns: which actions are recorded, and the text of their details. Messages and the activity of users and
//! agents in rooms are not recorded, nor are secrets.

use crate::commands::approvals::audit::decision_entry;
use crate::decide::{Change, Effects};
use crate::facts::Facts;
use parlor_model::audit::{Action, Actor, NewAuditEntry, Subject, SubjectKind};
use parlor_model::command::UserChanges;
use parlor_model::{
    ApiKey, Caller, Command, Edit, Invitation, Member, MemberId, MissionScope, Principal, Receipt, RoomId,
    RoomRole, Scope, Seq, SettingChanges, User,
};
use std::sync::Arc;

pub fn changes(caller: &Caller, command: &Command, facts: &Facts, plan: &Effects) -> Vec<Change> {
    let mut notes = notes(command, facts, plan);
    notes
        .extend(plan.changes.iter().filter_map(|change| approval(change).or_else(|| mission(change, facts))));
    let note = |(action, subject, detail): EntryParts| {
        let actor = actor(caller, facts);
        let detail: Option<Box<str>> = (!detail.is_empty()).then(|| detail.into());
        let (at, address) = (facts.now, caller.address);
        Change::AppendAudit(Arc::new(NewAuditEntry { at, actor, action, subject, detail, address }))
    };
    notes.into_iter().map(note).collect()
}

type EntryParts = (Action, Option<Subject>, String);

fn notes(command: &Command, facts: &Facts, plan: &Effects) -> Vec<EntryParts> {
    let entry = |action, subject, detail: String| vec![(action, Some(subject), detail)];
    let own = || facts.standing.as_ref().map(|standing| user(&standing.user));
    let about = || facts.user.as_ref().map(user);
    match (command, &plan.receipt) {
        (Command::NoteBackup { through }, _) => vec![(Action::BackedUp, None, up_to(*through))],
        (Command::SetUp { .. }, Receipt::User(new)) => {
            entry(Action::UserCreated, user(new), "as admin, by the setup link".into())
        }
        (Command::CreateUser(_), Receipt::User(new)) => {
            entry(Action::UserCreated, user(new), format!("as {}", new.role.as_str()))
        }
        (Command::Register { .. }, Receipt::User(new)) => {
            let by = facts.invitation.as_ref().map_or("", |invitation| invitation.id.as_str());
            entry(Action::UserCreated, user(new), format!("as {}, by invitation {by}", new.role.as_str()))
        }
        (Command::ChangeUser { changes, .. }, Receipt::User(new)) => changed(changes, facts, new),
        (Command::RemoveUser { .. }, _) => vec![(Action::UserRemoved, about(), String::new())],
        (Command::ChangePassword { .. }, _) => vec![(Action::PasswordChanged, own(), String::new())],
        (Command::Pair { .. }, Receipt::Key(new)) => {
            entry(Action::KeyCreated, key(new), format!("for {}, by a pairing code: agents", new.owner))
        }
        (Command::CreateInvitation(_), Receipt::Invitation(new)) => {
            let detail = format!("as {}, {} times", new.role.as_str(), new.uses);
            entry(Action::InvitationCreated, invitation(new), detail)
        }
        (Command::RevokeInvitation { .. }, _) => {
            let revoked = facts.invitation.as_ref().map(invitation);
            vec![(Action::InvitationRevoked, revoked, String::new())]
        }
        (Command::ChangeSettings(changes), _) => vec![(Action::SettingsChanged, None, settings(changes))],
        (Command::CreateRoom { members, .. }, Receipt::Room(new)) => entry(
            Action::RoomCreated,
            room(&new.id),
            format!("with {} other{}", members.len(), if members.len() == 1 { "" } else { "s" }),
        ),
        (Command::DeleteRoom { room: id }, _) => entry(Action::RoomRemoved, room(id), String::new()),
        (Command::Freeze { room: id }, _) if !plan.changes.is_empty() => {
            entry(Action::RoomFrozen, room(id), String::new())
        }
        (Command::Thaw { room: id }, _) if !plan.changes.is_empty() => {
            entry(Action::RoomThawed, room(id), String::new())
        }
        (Command::SetProjectRoot { room: id, root, .. }, _) if !plan.changes.is_empty() => {
            entry(Action::ProjectRootSet, room(id), root.as_deref().unwrap_or("none").into())
        }
        (Command::AddMember { room, .. }, Receipt::Member(new)) => {
            entry(Action::MemberAdded, member(new), in_room(room, Some(new.role)))
        }
        (Command::ChangeMember { room, .. }, Receipt::Member(new)) => {
            entry(Action::MemberChanged, member(new), in_room(room, Some(new.role)))
        }
        (Command::RemoveMember { room, .. }, _) => {
            vec![(Action::MemberRemoved, facts.target.as_ref().map(member), in_room(room, None))]
        }
        _ => Vec::new(),
    }
}

/// Record of an approval that the command withdraws.
fn approval(change: &Change) -> Option<EntryParts> {
    let Change::PutApproval(approval) = change else { return None };
    let (action, subject, detail) = decision_entry(approval, None)?;
    Some((action, Some(subject), detail))
}

/// Record of a mission that was ended with its room; without its text.
fn mission(change: &Change, facts: &Facts) -> Option<EntryParts> {
    let place = |mission_scope: &MissionScope| match mission_scope {
        MissionScope::Room(room) => in_room(room, None),
        MissionScope::Root(root) => format!("in {root}"),
        MissionScope::Global => "of itself".into(),
    };
    match change {
        Change::PutMission(mission) => {
            let ends = mission.ended_at.is_some();
            let action = if ends { Action::MissionEnded } else { Action::MissionSet };
            // Any other change of a mission is a prompt of an agent, which is not recorded.
            let is_recorded = ends || mission.created_at == facts.now && mission.prompts == 0;
            let detail = format!("mission {} {}", mission.id, place(&mission.mission_scope));
            is_recorded.then(|| (action, Some(room(&mission.room)), detail))
        }
        _ => None,
    }
}

/// Records for a changed account: a change of role or password gets its own record, so that it can be
/// searched for.
fn changed(changes: &UserChanges, facts: &Facts, new: &User) -> Vec<EntryParts> {
    let before = facts.user.as_ref().map_or(new.role, |user| user.role);
    let mut notes = Vec::new();
    if before != new.role {
        let detail = format!("from {} to {}", before.as_str(), new.role.as_str());
        notes.push((Action::RoleChanged, Some(user(new)), detail));
    }
    if changes.password_hash.is_some() {
        notes.push((Action::PasswordChanged, Some(user(new)), String::new()));
    }
    let rest = UserChanges { role: None, password_hash: None, ..changes.clone() };
    if rest != UserChanges::default() {
        notes.push((Action::UserChanged, Some(user(new)), String::new()));
    }
    notes
}

fn settings(changes: &SettingChanges) -> String {
    fn describe<T: ToString>(name: &str, change: &Edit<T>) -> Option<String> {
        match change {
            Edit::Keep => None,
            Edit::Clear => Some(format!("{name}: as started")),
            Edit::Set(value) => Some(format!("{name}: {}", value.to_string())),
        }
    }
    let all = [
        describe("hubName", &changes.name),
        describe("invitations", &changes.invitations),
        describe("lockoutFailures", &changes.lockout_failures),
        describe("lockoutSeconds", &changes.lockout_seconds),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn actor(caller: &Caller, facts: &Facts) -> Actor {
    let Some(standing) = &facts.standing else {
        return if caller.principal == Principal::Operator { Actor::Operator } else { Actor::Nobody };
    };
    let (id, name) = (standing.user.id.clone(), standing.user.username.clone());
    match &caller.principal {
        Principal::Program { key, .. } => Actor::Program { id, name, key: key.clone() },
        _ => Actor::Person { id, name },
    }
}

fn subject(kind: SubjectKind, id: &str, name: Option<&str>) -> Subject {
    Subject { kind, id: id.into(), name: name.map(Into::into) }
}

pub(crate) fn user(user: &User) -> Subject {
    subject(SubjectKind::User, user.id.as_str(), Some(&user.username))
}

pub(crate) fn key(key: &ApiKey) -> Subject {
    subject(SubjectKind::Key, key.id.as_str(), Some(&key.name))
}

fn invitation(invitation: &Invitation) -> Subject {
    subject(SubjectKind::Invitation, invitation.id.as_str(), invitation.note.as_deref())
}

fn room(room: &RoomId) -> Subject {
    subject(SubjectKind::Room, room.as_str(), None)
}

fn member(member: &Member) -> Subject {
    let kind = match &member.member {
        MemberId::User(_) => SubjectKind::User,
        MemberId::Agent(_) => SubjectKind::Agent,
    };
    subject(kind, member.member.as_str(), Some(&member.handle))
}

fn in_room(room: &RoomId, role: Option<RoomRole>) -> String {
    match role {
        Some(role) => format!("in room {room}, as {}", role.as_str()),
        None => format!("in room {room}"),
    }
}

/// Detail text of a backup: the events it contains.
pub fn up_to(through: Seq) -> String {
    format!("everything up to event {}", through.0)
}

pub(crate) fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}
