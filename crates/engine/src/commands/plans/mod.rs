//! Commands on agents' plans.

mod decide_plan;
mod update_plan;
