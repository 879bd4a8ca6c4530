//! The permission table of all commands that have a type of their own, with the verdicts described in `commands`.

use crate::callers::lobby;
use crate::requests::{PERSON, WRITE, post};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_model::command::{
    AddBookmark, DecidePlan, PinMessage, PlanDecision, RemoveBookmark, ToggleReaction, UnpinMessage,
};
use parlor_model::{AgentId, MessageId, Post, RoomId};

table! { AnyCommand; Stored,
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
    AnyCommand::Post(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    yes   who  ", WRITE,   post(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   post(), NO_ROOM;
    }
    AnyCommand::DecidePlan(_) => {
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(), READY;
        "who   who   out   no    yes   yes   out   out   out   no    no    who  ", PERSON,  decide_plan(), ADMINS_APPROVE;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    no    who  ", PERSON,  decide_plan(), NO_ROOM;
        "who   who   out   yes   yes   yes   out   out   out   no    no    who  ", PERSON,  approve_plan("lobby"), READY;
        "who   who   out   ?room ?room ?room out   out   out   no    no    who  ", PERSON,  approve_plan("other"), READY;
    }
    // Their rows are in `commands`.
    AnyCommand::Legacy(_) => {}
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

fn decide_plan() -> DecidePlan {
    DecidePlan { room: lobby(), agent: AgentId::stored("coder"), rev: 1, verdict: PlanDecision::Reject }
}

/// An approval that posts its message to this room.
fn approve_plan(room: &str) -> DecidePlan {
    let post = Post { room: RoomId::stored(room), ..post() };
    DecidePlan { verdict: PlanDecision::Approve(post), ..decide_plan() }
}
