//! Permissions of the family `plans`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{PERSON, READ, post};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{DecidePlan, PlanDecision, UpdatePlan};
use parlor_model::query::ListPlans;
use parlor_model::run_event::{Plan, PlanState};
use parlor_model::{AgentId, Post, RoomId, RunId};

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
    AnyCommand::UpdatePlan(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  update_plan(), PLANNED_RUN;
        "no    no    no    no    no    no    no    no    no    no    no    ?run ", PERSON,  update_plan(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListPlans(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_plans(Some(lobby())), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_plans(Some(lobby())), NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_plans(None), READY;
    }
}

fn decide_plan() -> DecidePlan {
    DecidePlan { room: lobby(), agent: AgentId::stored("coder"), rev: 1, verdict: PlanDecision::Reject }
}

/// An approval that posts its message to this room.
fn approve_plan(room: &str) -> DecidePlan {
    let post = Post { room: RoomId::stored(room), ..post() };
    DecidePlan { verdict: PlanDecision::Approve(post), ..decide_plan() }
}

fn update_plan() -> UpdatePlan {
    let plan = Plan { summary: "".into(), state: PlanState::Planned, steps: Vec::new(), text: None };
    UpdatePlan { run: RunId::stored("run"), plan }
}

fn list_plans(room: Option<RoomId>) -> ListPlans {
    ListPlans { room }
}
