//! The permission table of all commands and queries that have a type of their own, one file per family.

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
mod plans;
mod rooms;
mod routers;
mod runs;
mod services;
mod settings;
mod sign_ins;
mod tasks;
mod uploads;

use crate::table::StoredRow;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;

macro_rules! families {
    ($($family:ident,)+) => {
        pub fn commands() -> Vec<StoredRow<AnyCommand>> {
            let mut rows = Vec::new();
            $(rows.extend($family::commands());)+
            rows
        }

        pub fn queries() -> Vec<StoredRow<AnyQuery>> {
            let mut rows = Vec::new();
            $(rows.extend($family::queries());)+
            rows
        }
    };
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
    plans,
    rooms,
    routers,
    runs,
    services,
    settings,
    sign_ins,
    tasks,
    uploads,
}
