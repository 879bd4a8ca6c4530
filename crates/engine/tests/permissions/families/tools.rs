//! Permissions of the family `tools`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::AGENTS;
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::query::{
    ListReachableAgents, MayUseTools, ResolveRecipient, SearchAsAgent, SearchCursor, SearchMessages,
};
use parlor_model::{AgentId, Mailbox, RoomId, SessionId};

table! { commands: AnyCommand; }

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::MayUseTools(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  may_use(None), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  may_use(Some("main")), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  may_use(None), READY;
    }
    AnyQuery::ResolveRecipient(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  recipient(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  recipient(), READY;
    }
    AnyQuery::SearchAsAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  search(None), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  search(None), READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  search(Some(lobby())), MAIL_AGENT_IN_ROOM;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?room ?bot  no    ?room who  ", AGENTS,  search(Some(lobby())), MAIL_AGENT;
    }
    AnyQuery::ListReachableAgents(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  reachable(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  reachable(), READY;
    }
}

fn may_use(session: Option<&str>) -> MayUseTools {
    MayUseTools { mailbox: Mailbox { agent: coder(), session: session.map(SessionId::stored) } }
}

fn recipient() -> ResolveRecipient {
    ResolveRecipient { agent: coder(), to: "writer".into() }
}

fn search(room: Option<RoomId>) -> SearchAsAgent {
    let search = SearchMessages {
        text: "hello".into(),
        room,
        sender: None,
        sender_kind: None,
        kind: None,
        from: None,
        to: None,
        from_place: SearchCursor::default(),
        limit: 10,
    };
    SearchAsAgent { agent: coder(), search }
}

fn reachable() -> ListReachableAgents {
    ListReachableAgents { agent: coder() }
}

fn coder() -> AgentId {
    AgentId::stored("coder")
}
