//! Tasks.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, RoomChange, TaskChange};
use parlor_model::{MemberId, Task, TaskId, TaskPriority, TaskStatus, Time};
use std::sync::Arc;

pub fn task(id: &str, room: &str, by: MemberId, created: i64) -> Task {
    Task {
        id: TaskId::stored(id),
        room: room_id(room),
        title: "Tidy up".into(),
        description: Some("everything".into()),
        status: TaskStatus::InputRequired,
        priority: TaskPriority::Urgent,
        result: Some("half".into()),
        due_at: Some(Time(99)),
        assignee: Some(agent_member("coder")),
        parent: Some(TaskId::stored("first")),
        created_by: by,
        created_at: Time(created),
        updated_at: Time(created + 1),
    }
}

fn put(task: &Task) -> Change {
    Change::Task(TaskChange::PutTask(Arc::new(task.clone())))
}

#[test]
fn tasks_keep_every_field_and_are_deleted_with_their_room() {
    each(|ports| {
        ports.change(vec![put_room("lobby"), put_room("other")]);
        let first = task("z", "lobby", person("ann"), 1);
        let bare = Task {
            description: None,
            result: None,
            due_at: None,
            assignee: None,
            parent: None,
            ..task("b", "lobby", person("ann"), 2)
        };
        let same = Task { status: TaskStatus::Cancelled, ..task("a", "lobby", agent_member("coder"), 2) };
        let elsewhere = task("c", "other", person("ann"), 1);
        ports.change([&bare, &first, &same, &elsewhere].map(put).into());
        let tasks = |ports: &Ports, room| {
            ports.read(|s| Ok((s.tasks(&room_id(room))?, s.task_count(&room_id(room))?)))
        };
        assert_eq!(tasks(ports, "lobby"), (vec![first.clone(), same, bare.clone()], 3), "oldest first");
        for status in TaskStatus::ALL {
            let changed = Task { status, ..first.clone() };
            ports.change(vec![put(&changed)]);
            assert_eq!(ports.read(|s| s.task(&first.id)), Some(changed));
        }
        for priority in TaskPriority::ALL {
            let changed = Task { priority, ..first.clone() };
            ports.change(vec![put(&changed)]);
            assert_eq!(ports.read(|s| s.task(&first.id)), Some(changed));
        }
        ports.change(vec![Change::Task(TaskChange::RemoveTask(bare.id.clone()))]);
        assert_eq!(ports.read(|s| s.task(&bare.id)), None);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))]);
        assert_eq!(tasks(ports, "lobby"), (vec![], 0));
        assert_eq!(tasks(ports, "other"), (vec![elsewhere], 1));
    });
}

#[test]
fn a_user_has_the_created_and_assigned_tasks_in_their_rooms() {
    each(|ports| {
        ports.change(vec![put_room("lobby"), put_room("other"), put_member("lobby", person("ann"), 1)]);
        let created = task("created", "lobby", person("ann"), 1);
        let assigned = Task { assignee: Some(person("ann")), ..task("assigned", "lobby", person("bob"), 3) };
        let foreign = task("foreign", "lobby", person("bob"), 4);
        let namesake = task("namesake", "lobby", agent_member("ann"), 5);
        let elsewhere = task("elsewhere", "other", person("ann"), 6);
        ports.change([&created, &assigned, &foreign, &namesake, &elsewhere].map(put).into());
        let of = |user, limit, offset| ports.read(|s| s.tasks_of(&user_id(user), limit, offset));
        assert_eq!(of("ann", 9, 0), [assigned.clone(), created.clone()], "newest first");
        assert_eq!(of("ann", 1, 1), [created]);
        assert_eq!(of("bob", 9, 0), [], "Bob is not a member of the room");
    });
}
