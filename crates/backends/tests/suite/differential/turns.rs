//! Random commands for runs and plans, including repeated starts and finishes of the same run.

use super::agents::agent;
use super::asks::{TEXTS, room, selection};
use super::dice::Dice;
use super::world::World;
use crate::fixtures::plan;
use parlor_model::command::{
    CancelRun, DecidePlan, FinishRun, MergeRun, PlanDecision, PostLateReply, ReportUsage, StartRun,
    StartTurn, StartUnpromptedRun, StopRuns, StopSession, TurnCause, UpdatePlan, WithdrawRuns,
};
use parlor_model::run_event::PlanState;
use parlor_model::{AgentReply, Chunk, ChunkKind, MessageId, Payload, RunId, RunOutcome, SessionId, Usage};

const REPLIES: [&str; 4] = ["reply-1", "reply-2", "reply-3", "reply-4"];

fn run(dice: &mut Dice, world: &World) -> RunId {
    dice.known(&world.runs, RunId::stored("never"))
}

fn reply(dice: &mut Dice) -> AgentReply {
    let chunk = |dice: &mut Dice| Chunk {
        kind: dice.one_of(&[ChunkKind::Text, ChunkKind::ToolUse]),
        content: dice.one_of(&TEXTS).into(),
        metadata: dice.maybe(|_| Payload("{\"tool\":\"x\"}".into())),
    };
    AgentReply {
        message: dice.maybe(|dice| MessageId::stored(dice.one_of(&REPLIES))),
        text: dice.one_of(&TEXTS).into(),
        chunks: dice.maybe(chunk).into_iter().collect(),
        target: dice.maybe(|dice| dice.one_of(&["writer", "nobody"]).into()),
        claimed_depth: dice.roll(4) as u32,
        claimed_chain: dice.maybe(|dice| dice.one_of(&["writer", "nobody"]).into()).into_iter().collect(),
        origin: dice.maybe(super::origins::origin),
    }
}

pub fn start(dice: &mut Dice, world: &mut World) -> StartRun {
    StartRun { run: run(dice, world) }
}

pub fn join(dice: &mut Dice, world: &mut World) -> MergeRun {
    let into = run(dice, world);
    MergeRun { run: run(dice, world), into }
}

pub fn stop(dice: &mut Dice, world: &mut World) -> StopRuns {
    StopRuns { room: room(dice, world), agent: agent(dice, world) }
}

fn session(dice: &mut Dice) -> SessionId {
    SessionId::stored(dice.one_of(&["main", "side"]))
}

pub fn start_turn(dice: &mut Dice, world: &mut World) -> StartTurn {
    let cause = match dice.roll(3) {
        0 => {
            let message = dice.known(&world.messages, MessageId::stored("never"));
            TurnCause::Batch { messages: vec![message], attempt: 1 + dice.roll(4) as u32 }
        }
        _ => TurnCause::Explicit { prompt: dice.one_of(&TEXTS).into() },
    };
    StartTurn { agent: agent(dice, world), session: session(dice), cause }
}

pub fn stop_session(dice: &mut Dice, world: &mut World) -> StopSession {
    StopSession { agent: agent(dice, world), session: session(dice) }
}

pub fn withdraw(dice: &mut Dice, world: &mut World) -> WithdrawRuns {
    let run = dice.maybe(|dice| run(dice, world));
    WithdrawRuns { room: room(dice, world), agent: dice.maybe(|dice| agent(dice, world)), run }
}

pub fn cancel(dice: &mut Dice, world: &mut World) -> CancelRun {
    CancelRun { run: run(dice, world) }
}

pub fn open(dice: &mut Dice, world: &mut World) -> StartUnpromptedRun {
    StartUnpromptedRun { agent: agent(dice, world), room: room(dice, world) }
}

pub fn finish(dice: &mut Dice, world: &mut World) -> FinishRun {
    let failed = RunOutcome::Failed("it broke".into());
    let outcome = dice.one_of(&[
        RunOutcome::Complete,
        RunOutcome::Complete,
        failed,
        RunOutcome::Cancelled,
        RunOutcome::Interrupted,
    ]);
    FinishRun { run: run(dice, world), outcome, said: dice.maybe(reply) }
}

pub fn post_late_reply(dice: &mut Dice, world: &mut World) -> PostLateReply {
    let run = dice.maybe(|dice| run(dice, world));
    PostLateReply { agent: agent(dice, world), room: room(dice, world), said: reply(dice), run }
}

pub fn report_usage(dice: &mut Dice, world: &mut World) -> ReportUsage {
    let cost = dice.maybe(|dice| dice.roll(9) as u64);
    let usage = Usage { input_tokens: dice.roll(100) as u64, output_tokens: dice.roll(100) as u64, cost };
    ReportUsage { run: run(dice, world), usage }
}

pub fn update_plan(dice: &mut Dice, world: &mut World) -> UpdatePlan {
    let any = run(dice, world);
    // Mostly for the newest run, which may be running.
    let run = if dice.once_in(3) { any } else { world.runs.last().cloned().unwrap_or(any) };
    let state = dice.one_of(&[PlanState::Planned, PlanState::Planned, PlanState::Executing]);
    UpdatePlan { run, plan: plan(&dice.roll(9).to_string(), state) }
}

pub fn decide_plan(dice: &mut Dice, world: &mut World) -> DecidePlan {
    let any = (room(dice, world), agent(dice, world));
    let members = world.memberships.iter();
    let here: Vec<_> = members.filter_map(|(room, own)| Some((room.clone(), own.agent()?.clone()))).collect();
    let (room, agent) = if dice.once_in(4) { any } else { dice.known(&here, any) };
    let verdict = match dice.roll(4) {
        0 => PlanDecision::Reject,
        1 => PlanDecision::Edit("other words".into()),
        _ => PlanDecision::Approve,
    };
    DecidePlan { agent, rooms: selection(dice, room), verdict }
}
