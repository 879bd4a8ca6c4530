//! Permissions of the family `gateways`, with the verdicts described in `families`.

use crate::callers::CallerKind;
use crate::requests::{AGENTS, HOSTING, PERSON, READ};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{AgentChange, Change};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{ConnectGateway, DisconnectGateway, RemoveGateway};
use parlor_model::query::{ListGateways, MayManageCredentials, MaySpawnAgents};
use parlor_model::{Device, Gateway, GatewayId, Time, UserId};
use std::sync::Arc;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::ConnectGateway(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", HOSTING, connect_gateway("laptop"), READY;
        "who   who   !gate !gate !gate !gate !gate yes   !gate no    yes   who  ", HOSTING, connect_gateway("laptop"), AGENT_OWNERS_GATEWAY;
        "who   who   !gate !gate !gate !gate !gate !gate !gate no    !gate who  ", HOSTING, connect_gateway("hub"), READY;
    }
    AnyCommand::DisconnectGateway(_) => {
        "who   who   ?gate ?gate ?gate ?gate ?gate yes   ?gate no    yes   yes  ", HOSTING, disconnect_gateway(), AGENT_OWNERS_GATEWAY;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    ?gate ?gate", HOSTING, disconnect_gateway(), READY;
    }
    AnyCommand::RemoveGateway(_) => {
        "who   who   ?gate ?gate ?gate ?gate ?gate yes   ?gate no    yes   who  ", AGENTS,  remove_gateway("laptop"), AGENT_OWNERS_GATEWAY;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    ?gate who  ", AGENTS,  remove_gateway("laptop"), READY;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    ?gate who  ", AGENTS,  remove_gateway("hub"), OWN_GATEWAY_NAMED_HUB;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListGateways(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   yes  ", READ,    ListGateways, READY;
    }
    AnyQuery::MaySpawnAgents(_) => {
        "who   who   ?gate ?gate ?gate ?gate ?gate yes   ?gate no    yes   who  ", AGENTS,  may_spawn_agents("laptop"), AGENT_OWNERS_GATEWAY;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    ?gate who  ", AGENTS,  may_spawn_agents("laptop"), READY;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    ?gate who  ", AGENTS,  may_spawn_agents("hub"), OWN_GATEWAY_NAMED_HUB;
    }
    AnyQuery::MayManageCredentials(_) => {
        "who   who   ?gate ?gate ?gate ?gate ?gate yes   ?gate no    no    who  ", PERSON,  may_manage_credentials(), AGENT_OWNERS_GATEWAY;
        "who   who   ?gate ?gate ?gate ?gate ?gate ?gate ?gate no    no    who  ", PERSON,  may_manage_credentials(), READY;
    }
}

fn connect_gateway(id: &str) -> ConnectGateway {
    ConnectGateway { id: GatewayId::stored(id), device: Device::default(), ephemeral: false }
}

fn disconnect_gateway() -> DisconnectGateway {
    DisconnectGateway { gateway: GatewayId::stored("laptop") }
}

fn remove_gateway(id: &str) -> RemoveGateway {
    RemoveGateway { gateway: GatewayId::stored(id) }
}

fn may_spawn_agents(id: &str) -> MaySpawnAgents {
    MaySpawnAgents { gateway: GatewayId::stored(id) }
}

fn may_manage_credentials() -> MayManageCredentials {
    MayManageCredentials { gateway: GatewayId::stored("laptop") }
}

pub const AGENT_OWNERS_GATEWAY: Stored = |_| OWN_GATEWAY(CallerKind::AgentOwner);
pub const OWN_GATEWAY: Stored = |who| put_gateway("laptop", who.user());
/// A gateway with the hub's own id, as a user could have created before the id was reserved.
const OWN_GATEWAY_NAMED_HUB: Stored = |who| put_gateway("hub", who.user());

fn put_gateway(id: &str, owner: Option<UserId>) -> Vec<Change> {
    let gateway = |owner| Gateway {
        id: GatewayId::stored(id),
        owner,
        device: Device::default(),
        ephemeral: false,
        connected_at: Time(1),
        disconnected_at: None,
        pending_removals: Vec::new(),
    };
    owner.map(|owner| Change::Agent(AgentChange::PutGateway(Arc::new(gateway(owner))))).into_iter().collect()
}
