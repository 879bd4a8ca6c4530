//! The permission table of all queries that have a type of their own, with the verdicts described in `commands`.

use crate::callers::lobby;
use crate::requests::READ;
use crate::stored::*;
use crate::table::table;
use parlor_engine::queries::AnyQuery;
use parlor_model::query::{ListBookmarks, ListPins};

table! { AnyQuery; Stored,
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListPins(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_pins(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_pins(), NO_ROOM;
    }
    AnyQuery::ListBookmarks(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_bookmarks(), READY;
    }
    // Their rows are in `queries`.
    AnyQuery::Legacy(_) => {}
}

fn list_pins() -> ListPins {
    ListPins { room: lobby() }
}

fn list_bookmarks() -> ListBookmarks {
    ListBookmarks { before: None, limit: 10 }
}
