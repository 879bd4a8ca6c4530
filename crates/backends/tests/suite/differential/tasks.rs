//! Random commands for tasks.

use super::agents::agent;
use super::asks::{NAMES, TEXTS, member, room};
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{ChangeTask, CreateTask, RemoveTask, ReportTask, TaskChanges};
use parlor_model::{MemberId, TaskId, TaskPriority, TaskStatus, Time};

fn task(dice: &mut Dice, world: &World) -> TaskId {
    dice.known(&world.tasks, TaskId::stored("never"))
}

fn text(dice: &mut Dice) -> Option<Box<str>> {
    dice.maybe(|dice| dice.one_of(&TEXTS).into())
}

fn due(dice: &mut Dice) -> Option<Time> {
    dice.maybe(|dice| Time(dice.roll(9) as i64))
}

fn assignee(dice: &mut Dice, world: &World) -> Option<MemberId> {
    dice.maybe(|dice| member(dice, world))
}

pub fn create(dice: &mut Dice, world: &mut World) -> CreateTask {
    CreateTask {
        room: room(dice, world),
        by: if dice.once_in(4) { Some(agent(dice, world)) } else { None },
        title: dice.one_of(&NAMES).into(),
        description: text(dice),
        priority: dice.one_of(&TaskPriority::ALL),
        due_at: due(dice),
        assignee: if dice.once_in(2) {
            Some(MemberId::Agent(agent(dice, world)))
        } else {
            assignee(dice, world)
        },
        parent: if dice.once_in(4) { Some(task(dice, world)) } else { None },
    }
}

pub fn change(dice: &mut Dice, world: &mut World) -> ChangeTask {
    let status = dice.maybe(|dice| dice.one_of(&TaskStatus::ALL));
    let changes = if dice.once_in(2) {
        TaskChanges { status, ..TaskChanges::default() }
    } else {
        TaskChanges {
            status,
            title: dice.maybe(|dice| dice.one_of(&NAMES).into()),
            description: dice.maybe(text).into(),
            priority: dice.maybe(|dice| dice.one_of(&TaskPriority::ALL)),
            result: dice.maybe(text).into(),
            due_at: dice.maybe(due).into(),
            assignee: dice.maybe(|dice| assignee(dice, world)).into(),
        }
    };
    ChangeTask { task: task(dice, world), changes }
}

pub fn remove(dice: &mut Dice, world: &mut World) -> RemoveTask {
    RemoveTask { task: task(dice, world) }
}

pub fn report(dice: &mut Dice, world: &mut World) -> ReportTask {
    let status = dice.one_of(&TaskStatus::ALL);
    ReportTask { task: task(dice, world), agent: agent(dice, world), status, result: text(dice) }
}
