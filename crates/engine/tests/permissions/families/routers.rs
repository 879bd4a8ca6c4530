//! Permissions of the family `routers`, with the verdicts described in `families`.

use crate::callers::other_user;
use crate::fixtures::router;
use crate::requests::{READ, WRITE, a_model};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{Change, ModelChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{ChangeRouter, CreateRouter, RemoveRouter, RouterChanges};
use parlor_model::query::{GetOwnRouter, ListRouters, MayCreateRouter};
use parlor_model::{RouterId, UserId};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateRouter(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   create_router(false), READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", WRITE,   create_router(true), READY;
    }
    AnyCommand::ChangeRouter(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   change_router(None), OWN_ROUTER;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", WRITE,   change_router(Some(true)), OWN_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout ?rout ?rout ?rout no    ?rout who  ", WRITE,   change_router(None), ANOTHERS_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout yes   ?rout ?rout no    ?rout who  ", WRITE,   change_router(None), SHARED_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout ?rout ?rout ?rout no    ?rout who  ", WRITE,   change_router(None), READY;
    }
    AnyCommand::RemoveRouter(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   remove_router(), OWN_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout ?rout ?rout ?rout no    ?rout who  ", WRITE,   remove_router(), ANOTHERS_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout yes   ?rout ?rout no    ?rout who  ", WRITE,   remove_router(), SHARED_ROUTER;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListRouters(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    ListRouters, READY;
    }
    AnyQuery::MayCreateRouter(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   MayCreateRouter { shared: false }, READY;
        "who   who   no    no    no    no    yes   no    no    no    no    who  ", WRITE,   MayCreateRouter { shared: true }, READY;
    }
    AnyQuery::GetOwnRouter(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   get_own_router(), OWN_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout ?rout ?rout ?rout no    ?rout who  ", WRITE,   get_own_router(), ANOTHERS_ROUTER;
        "who   who   ?rout ?rout ?rout ?rout yes   ?rout ?rout no    ?rout who  ", WRITE,   get_own_router(), SHARED_ROUTER;
    }
}

const OWN_ROUTER: Stored = |who| who.user().map(|user| put_router(user, false)).into_iter().collect();
const ANOTHERS_ROUTER: Stored = |_| vec![put_router(other_user(), false)];
const SHARED_ROUTER: Stored = |_| vec![put_router(other_user(), true)];

fn put_router(created_by: UserId, shared: bool) -> Change {
    Change::Model(ModelChange::PutRouter(Arc::new(router(created_by, shared))))
}

fn router_id() -> RouterId {
    RouterId::stored("router")
}

fn create_router(shared: bool) -> CreateRouter {
    CreateRouter { name: "picker".into(), shared, model: a_model() }
}

fn change_router(shared: Option<bool>) -> ChangeRouter {
    ChangeRouter { router: router_id(), changes: RouterChanges { shared, ..RouterChanges::default() } }
}

fn remove_router() -> RemoveRouter {
    RemoveRouter { router: router_id() }
}

fn get_own_router() -> GetOwnRouter {
    GetOwnRouter { router: router_id() }
}
