//! Commands on agents' plans.

mod decide_plan;
