//! Permissions of the family `missions`, with the verdicts described in `commands`.

use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;

table! { commands: AnyCommand; }

table! { queries: AnyQuery; }
