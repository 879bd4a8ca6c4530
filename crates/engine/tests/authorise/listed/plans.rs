//! Permissions of the family `plans`, with the verdicts described in `commands`.

use crate::callers::lobby;
use crate::requests::{PERSON, post};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{DecidePlan, PlanDecision};
use parlor_model::{AgentId, Post, RoomId};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::DecidePlan(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(), READY;
        "who   who   out   no    yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(), ADMINS_APPROVE;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    no    who  ", PERSON,  decide_plan(), NO_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  approve_plan("lobby"), READY;
        "who   who   out   ?room ?room ?room out   out   out   no    no    who  ", PERSON,  approve_plan("other"), READY;
    }
}

table! { queries: AnyQuery; }

fn decide_plan() -> DecidePlan {
    DecidePlan { room: lobby(), agent: AgentId::stored("coder"), rev: 1, verdict: PlanDecision::Reject }
}

/// An approval that posts its message to this room.
fn approve_plan(room: &str) -> DecidePlan {
    let post = Post { room: RoomId::stored(room), ..post() };
    DecidePlan { verdict: PlanDecision::Approve(post), ..decide_plan() }
}
