//! Permissions of the family `services`, with the verdicts described in `families`.

use crate::callers::other_user;
use crate::fixtures::agent;
use crate::requests::{ADMINS, a_model};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{AgentChange, Change, ModelChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{ChangeService, CreateService, RemoveService, ServiceChanges};
use parlor_model::query::{GetService, ListServices};
use parlor_model::{AgentId, Service, Time, UserId};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateService(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   who  ", ADMINS,  create_service(), READY;
    }
    AnyCommand::ChangeService(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  change_service(), A_SERVICE;
        "who   who   no    no    no    no    ?serv no    no    no    ?serv ?serv", ADMINS,  change_service(), NO_SERVICE;
    }
    AnyCommand::RemoveService(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  remove_service(), A_SERVICE;
        "who   who   no    no    no    no    ?serv no    no    no    ?serv ?serv", ADMINS,  remove_service(), NO_SERVICE;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListServices(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  ListServices, READY;
    }
    AnyQuery::GetService(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  get_service(), A_SERVICE;
        "who   who   no    no    no    no    ?serv no    no    no    ?serv ?serv", ADMINS,  get_service(), NO_SERVICE;
    }
}

/// A service of another user: every site admin may manage it.
const A_SERVICE: Stored = |_| {
    let service = Service {
        agent: coder(),
        active: true,
        model: a_model(),
        fallback: None,
        instructions: None,
        most_tokens: None,
        updated_at: Time(1),
    };
    vec![put_agent(other_user()), Change::Model(ModelChange::PutService(Arc::new(service)))]
};
/// The caller's own agent, which is not a service.
const NO_SERVICE: Stored = |who| who.user().map(put_agent).into_iter().collect();

fn put_agent(owner: UserId) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(agent(owner))))
}

fn coder() -> AgentId {
    AgentId::stored("coder")
}

fn create_service() -> CreateService {
    CreateService {
        name: "Sage".into(),
        description: "".into(),
        active: true,
        model: a_model(),
        fallback: None,
        instructions: None,
        most_tokens: None,
    }
}

fn change_service() -> ChangeService {
    ChangeService { agent: coder(), changes: ServiceChanges::default() }
}

fn remove_service() -> RemoveService {
    RemoveService { agent: coder() }
}

fn get_service() -> GetService {
    GetService { agent: coder() }
}
