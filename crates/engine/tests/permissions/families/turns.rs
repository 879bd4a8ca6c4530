//! Permissions of the family `turns`, with the verdicts described in `families`.

use crate::requests::{AGENTS, PERSON};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{BatchVerdict, DecideBatch, ReleaseBatch, SendHeartbeat, TriggerTurn, TurnInput};
use parlor_model::query::ListTurns;
use parlor_model::{AgentId, SessionId, TurnPage};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::DecideBatch(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  decide_batch(), MAIL_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  decide_batch(), READY;
    }
    AnyCommand::ReleaseBatch(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  release_batch(), MAIL_AGENT;
    }
    AnyCommand::SendHeartbeat(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  send_heartbeat(), MAIL_AGENT;
        "no    no    no    no    no    no    no    no    no    no    no    ?bot ", PERSON,  send_heartbeat(), READY;
    }
    AnyCommand::TriggerTurn(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  trigger_turn(), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  trigger_turn(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListTurns(_) => {
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  yes   ?bot  no    yes   who  ", AGENTS,  list_turns(Some(coder())), MAIL_AGENT;
        "who   who   ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  ?bot  no    ?bot  who  ", AGENTS,  list_turns(Some(coder())), READY;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", AGENTS,  list_turns(None), READY;
    }
}

fn decide_batch() -> DecideBatch {
    let verdict = BatchVerdict::Start { reason: "because".into() };
    DecideBatch { agent: coder(), session: SessionId::main(), messages: Vec::new(), verdict }
}

fn release_batch() -> ReleaseBatch {
    ReleaseBatch { agent: coder(), session: SessionId::main() }
}

fn send_heartbeat() -> SendHeartbeat {
    SendHeartbeat { agent: coder(), cron: "* * * * *".into() }
}

fn trigger_turn() -> TriggerTurn {
    TriggerTurn { agent: coder(), session: SessionId::main(), input: TurnInput::Prompt("go".into()) }
}

fn list_turns(agent: Option<AgentId>) -> ListTurns {
    ListTurns { agent, page: TurnPage { limit: 10, before: None, session: None } }
}

fn coder() -> AgentId {
    AgentId::stored("coder")
}
