//! Permissions of the family `maintenance`, with the verdicts described in `families`.

use crate::requests::PERSON;
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::Seq;
use parlor_model::command::{AppendNoop, RecordBackup};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::RecordBackup(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  record_backup(), READY;
    }
    AnyCommand::AppendNoop(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  AppendNoop, READY;
    }
}

table! { queries: AnyQuery; }

fn record_backup() -> RecordBackup {
    RecordBackup { through: Seq(7) }
}
