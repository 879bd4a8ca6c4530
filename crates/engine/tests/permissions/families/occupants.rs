//! Permissions of the family `occupants`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{READ, SOURCES, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::Path;
use parlor_model::query::{MayEnterPlace, MayListOccupants, MayReadOccupancy, MayReadOccupantHistory};

table! { commands: AnyCommand; }

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::MayEnterPlace(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   enter(room()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   enter(room()), NO_ROOM;
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", SOURCES, enter(path("slack/team")), READY;
        "who   who   no    no    no    no    pub   no    no    no    pub   who  ", SOURCES, enter(path("agent/coder")), READY;
    }
    AnyQuery::MayListOccupants(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list(room()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list(room()), NO_ROOM;
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", SOURCES, list(path("slack/team")), READY;
        "who   who   no    no    no    no    pub   no    no    no    pub   who  ", SOURCES, list(path("room")), READY;
    }
    AnyQuery::MayReadOccupancy(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    occupancy(room()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    occupancy(room()), NO_ROOM;
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", SOURCES, occupancy(path("slack/team")), READY;
    }
    AnyQuery::MayReadOccupantHistory(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    history(room()), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    history(room()), NO_ROOM;
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", SOURCES, history(path("slack/team")), READY;
    }
}

fn room() -> Path {
    Path::of_room(&lobby())
}

fn path(path: &str) -> Path {
    Path::parse(path).unwrap()
}

fn enter(place: Path) -> MayEnterPlace {
    MayEnterPlace { place }
}

fn list(place: Path) -> MayListOccupants {
    MayListOccupants { place }
}

fn occupancy(place: Path) -> MayReadOccupancy {
    MayReadOccupancy { place }
}

fn history(place: Path) -> MayReadOccupantHistory {
    MayReadOccupantHistory { place }
}
