//! Permissions of the family `plans`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{PERSON, READ, at_root};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{DecidePlan, PlanDecision, UpdatePlan};
use parlor_model::query::ListPlans;
use parlor_model::run_event::{Plan, PlanState};
use parlor_model::{AgentId, RoomSelection, RunId};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::DecidePlan(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(lobby().into()), A_PLAN;
        "who   who   out   no    yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(lobby().into()), A_PLAN_ADMINS_APPROVE;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", PERSON,  decide_plan(lobby().into()), NO_ROOM;
        "who   who   out   ?plan ?plan ?plan out   out   out   no    ?plan who  ", PERSON,  decide_plan(lobby().into()), READY;
        "who   who   out   ?plan ?plan ?plan out   out   out   no    ?plan who  ", PERSON,  decide_plan(lobby().into()), A_DECIDED_PLAN;
        "who   who   ?plan yes   yes   yes   ?plan ?plan ?plan no    no    who  ", PERSON,  decide_plan(RoomSelection::EMPTY), A_PLAN;
        "who   who   ?plan plans plans plans ?plan ?plan ?plan no    plans who  ", PERSON,  decide_plan(RoomSelection::EMPTY), TWO_PLANS;
        "who   who   no    plans plans plans no    no    no    no    plans who  ", PERSON,  decide_plan(at_root("/srv/code", None)), TWO_PLANS;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(at_root("/srv/code", Some(lobby()))), TWO_PLANS;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  approve_plan(), A_PLAN;
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
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_plans(lobby().into()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_plans(lobby().into()), NO_ROOM;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_plans(RoomSelection::EMPTY), READY;
        "who   who   no    yes   yes   yes   no    no    no    no    yes   who  ", READ,    list_plans(at_root("/srv/code", None)), LOBBY_AND_OTHER_AT_ROOT;
    }
}

fn decide_plan(rooms: RoomSelection) -> DecidePlan {
    DecidePlan { agent: AgentId::stored("coder"), rooms, verdict: PlanDecision::Reject }
}

fn approve_plan() -> DecidePlan {
    DecidePlan { verdict: PlanDecision::Approve, ..decide_plan(lobby().into()) }
}

fn update_plan() -> UpdatePlan {
    let plan = Plan { summary: "".into(), state: PlanState::Planned, steps: Vec::new(), text: None };
    UpdatePlan { run: RunId::stored("run"), plan }
}

fn list_plans(rooms: RoomSelection) -> ListPlans {
    ListPlans { rooms }
}
