//! Permissions of the family `sessions`, with the verdicts described in `families`.

use super::agents::{AGENT_OWNERS_AGENT, AGENT_SHARED_WITH_ALL, coder};
use crate::requests::AGENTS;
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::query::{ListActiveSessions, ListSessions, MayFollowSessions, MayInstructAgent};

table! { commands: AnyCommand; }

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListSessions(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  list_sessions(), READY;
    }
    AnyQuery::ListActiveSessions(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  ListActiveSessions { agent: None }, READY;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  list_active_sessions(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  list_active_sessions(), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  list_active_sessions(), READY;
    }
    AnyQuery::MayFollowSessions(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  MayFollowSessions, READY;
    }
    AnyQuery::MayInstructAgent(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  may_instruct_agent(), AGENT_OWNERS_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  may_instruct_agent(), AGENT_SHARED_WITH_ALL;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  may_instruct_agent(), READY;
    }
}

fn list_sessions() -> ListSessions {
    ListSessions { agent_prefix: "".into(), limit: 10 }
}

fn list_active_sessions() -> ListActiveSessions {
    ListActiveSessions { agent: Some(coder()) }
}

fn may_instruct_agent() -> MayInstructAgent {
    MayInstructAgent { agent: coder() }
}
