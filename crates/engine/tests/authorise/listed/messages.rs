//! Permissions of the family `messages`, with the verdicts described in `commands`.

use crate::requests::{WRITE, post};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::Post(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   post(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   post(), NO_ROOM;
    }
}

table! { queries: AnyQuery; }
