//! Permissions of the family `annotations`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{READ, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::MessageId;
use parlor_model::command::{AddBookmark, PinMessage, RemoveBookmark, ToggleReaction, UnpinMessage};
use parlor_model::query::{ListBookmarks, ListPins};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::ToggleReaction(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   toggle_reaction(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   toggle_reaction(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   toggle_reaction(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   toggle_reaction(), NO_ROOM;
    }
    AnyCommand::PinMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   pin(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   pin(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   pin(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   pin(), NO_ROOM;
    }
    AnyCommand::UnpinMessage(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   unpin(), OWN_PIN;
        "who   who   ?msg  no    yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   unpin(), ANOTHERS_PIN;
        "who   who   ?msg  ?pin  ?pin  ?pin  ?msg  ?msg  ?msg  no    ?pin  who  ", WRITE,   unpin(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   unpin(), READY;
    }
    AnyCommand::AddBookmark(_) => {
        "who   who   ?msg  yes   yes   yes   ?msg  ?msg  ?msg  no    yes   who  ", WRITE,   add_bookmark(), ANOTHERS_MESSAGE;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   add_bookmark(), MESSAGE_CLEARED_AWAY;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   add_bookmark(), MESSAGE_ON_A_PATH;
        "who   who   ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  ?msg  no    ?msg  who  ", WRITE,   add_bookmark(), NO_ROOM;
    }
    AnyCommand::RemoveBookmark(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   remove_bookmark(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListPins(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", READ,    list_pins(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", READ,    list_pins(), NO_ROOM;
    }
    AnyQuery::ListBookmarks(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    list_bookmarks(), READY;
    }
}

fn message() -> MessageId {
    MessageId::stored("message")
}

fn toggle_reaction() -> ToggleReaction {
    ToggleReaction { message: message(), emoji: "+1".into() }
}

fn pin() -> PinMessage {
    PinMessage { message: message() }
}

fn unpin() -> UnpinMessage {
    UnpinMessage { message: message() }
}

fn add_bookmark() -> AddBookmark {
    AddBookmark { message: message() }
}

fn remove_bookmark() -> RemoveBookmark {
    RemoveBookmark { message: message() }
}

fn list_pins() -> ListPins {
    ListPins { room: lobby() }
}

fn list_bookmarks() -> ListBookmarks {
    ListBookmarks { before: None, limit: 10 }
}
