//! The permission table, one file per family.
//!
//! Verdicts: yes: allowed; no: `Forbidden`; who: `NotSignedIn`; out: `NotAMember`; keep: `LastOneRequired`;
//! ?…: `NotFound`, either because it does not exist or because the caller may not know of it; !…:
//! `BelongsToAnother`; none, many, plans, where: the request must select a room, or another one. Each row gives the verdicts, the scope that a key needs, the command, and the rows of the
//! store.

mod accounts;
mod agents;
mod annotations;
mod approvals;
mod gateways;
mod invitations;
mod keys;
mod mail;
mod maintenance;
mod messages;
mod missions;
mod occupants;
mod plans;
mod rooms;
mod routers;
mod runs;
mod services;
mod sessions;
mod settings;
mod sign_ins;
mod tasks;
mod tools;
mod turns;
mod uploads;

use crate::table::Row;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;

pub struct Family {
    pub name: &'static str,
    pub commands: Vec<Row<AnyCommand>>,
    pub queries: Vec<Row<AnyQuery>>,
}

macro_rules! families {
    ($($family:ident,)+) => {
        pub fn families() -> Vec<Family> {
            vec![$(Family {
                name: stringify!($family),
                commands: $family::commands(),
                queries: $family::queries(),
            },)+]
        }
    };
}

pub fn commands() -> Vec<Row<AnyCommand>> {
    families().into_iter().flat_map(|family| family.commands).collect()
}

pub fn queries() -> Vec<Row<AnyQuery>> {
    families().into_iter().flat_map(|family| family.queries).collect()
}

families! {
    accounts,
    agents,
    annotations,
    approvals,
    gateways,
    invitations,
    keys,
    mail,
    maintenance,
    messages,
    missions,
    occupants,
    plans,
    rooms,
    routers,
    runs,
    services,
    sessions,
    settings,
    sign_ins,
    tasks,
    tools,
    turns,
    uploads,
}
