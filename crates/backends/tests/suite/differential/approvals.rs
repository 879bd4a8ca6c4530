//! Random commands for approvals: request, decide, answer, expire, revoke a rule.

use super::agents::{GATEWAYS, agent};
use super::asks::room;
use super::dice::Dice;
use super::world::World;
use crate::fixtures::{answer as answer_to, questions};
use parlor_model::command::{
    AnswerQuestions, AskApproval, DecideApproval, ExpireApproval, RevokeApprovalRule,
};
use parlor_model::{ApprovalId, ApprovalSubject, GatewayId, InputDigest, Payload, RunId};
use std::time::Duration;

pub const REQUESTS: [&str; 3] = ["1", "2", "a \"b\""];
pub const TOOLS: [&str; 3] = ["Bash", "mcp__x", " "];

pub fn ask(dice: &mut Dice, world: &mut World) -> AskApproval {
    let run = dice.known(&world.runs, RunId::stored("never"));
    let input = dice.roll(2) as u8;
    AskApproval {
        // Mostly for the newest run, which may be running.
        run: if dice.once_in(3) { run } else { world.runs.last().cloned().unwrap_or(run) },
        gateway: GatewayId::stored(dice.one_of(&GATEWAYS[..2])),
        request: dice.one_of(&REQUESTS).into(),
        tool: dice.one_of(&[TOOLS[0], TOOLS[0], TOOLS[1], TOOLS[2]]).into(),
        subject: match dice.once_in(3) {
            true => ApprovalSubject::Questions(questions()),
            false => ApprovalSubject::Tool(Payload(format!("{{\"n\": {input}.0}}").into())),
        },
        digest: InputDigest([input; 32]),
        timeout: Duration::from_secs(dice.roll(256) as u64 * 2),
    }
}

fn approval(dice: &mut Dice, world: &World) -> ApprovalId {
    let any = dice.known(&world.approvals, ApprovalId::stored("never"));
    if dice.once_in(3) { any } else { world.approvals.last().cloned().unwrap_or(any) }
}

pub fn decide(dice: &mut Dice, world: &mut World) -> DecideApproval {
    DecideApproval {
        approval: approval(dice, world),
        allow: dice.once_in(2),
        always: dice.once_in(2),
        reason: dice.maybe(|_| "no 'thanks'".into()),
        digest: dice.once_in(4).then(|| InputDigest([dice.roll(2) as u8; 32])),
    }
}

pub fn answer(dice: &mut Dice, world: &mut World) -> AnswerQuestions {
    let text = dice.maybe(|_| "free \0 text");
    let answers = match dice.roll(6) {
        0 => Vec::new(),
        1 => vec![answer_to(7, &["Tea"], None)],
        2 => vec![answer_to(1, &["Tea", "a \"b\""], text)],
        3 => vec![answer_to(1, &["a \"b\""], text), answer_to(0, &["Tea"], None)],
        _ => vec![answer_to(0, &["Tea"], None)],
    };
    AnswerQuestions { approval: approval(dice, world), answers }
}

pub fn expire(dice: &mut Dice, world: &mut World) -> ExpireApproval {
    ExpireApproval { approval: approval(dice, world) }
}

pub fn revoke_rule(dice: &mut Dice, world: &mut World) -> RevokeApprovalRule {
    let any = (room(dice, world), agent(dice, world), dice.one_of(&TOOLS).into());
    let (room, agent, tool) = if dice.once_in(4) { any } else { dice.known(&world.rules, any) };
    RevokeApprovalRule { room, agent, tool }
}
