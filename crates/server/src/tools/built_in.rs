//! Built-in tools: each is a thin function over a command or query of the engine.

use super::refused;
use crate::App;
use parlor_engine::runs::UserQuestion;
use parlor_model::query::{ListReachableAgents, ResolveRecipient, SearchAsAgent};
use parlor_model::{
    Caller, EntityKind, Payload, Principal, Refusal, Route, ToolCall, ToolFailure, ToolFailureCode,
};
use parlor_wire::canonical;
use parlor_wire::tools::{self as json, AskInput, BuiltInTool, SendInput};

pub async fn call(
    app: &App,
    caller: &Caller,
    tool: BuiltInTool,
    call: &ToolCall,
) -> Result<Payload, ToolFailure> {
    match tool {
        BuiltInTool::SendMessage => send(app, caller, call).await,
        BuiltInTool::AskUser => ask(app, caller, call).await,
        BuiltInTool::SearchMessages => {
            let query = SearchAsAgent { agent: call.agent.clone(), search: json::search(&call.input)? };
            let found = app.hub.read(caller, query).await;
            found.map(|results| json::found(&results)).map_err(|refusal| refused(&refusal, &call.agent))
        }
        BuiltInTool::ListAgents => {
            let query = ListReachableAgents { agent: call.agent.clone() };
            let found = app.hub.read(caller, query).await;
            found.map(|agents| json::agents(&agents)).map_err(|refusal| refused(&refusal, &call.agent))
        }
    }
}

/// Sends a message as the agent. A message without a recipient becomes a dead letter, which is no failure.
async fn send(app: &App, caller: &Caller, call: &ToolCall) -> Result<Payload, ToolFailure> {
    let SendInput { to, command, payload, text } = SendInput::parse(&call.input)?;
    let failed = |refusal: Refusal| refused(&refusal, &call.agent);
    let query = ResolveRecipient { agent: call.agent.clone(), to };
    let path = app.hub.read(caller, query).await.map_err(|refusal| match refusal {
        Refusal::Invalid(_) => {
            ToolFailure::new(ToolFailureCode::InvalidInput, "to must be the id of an agent or a path")
        }
        refusal => failed(refusal),
    })?;
    let route = Route {
        from: call.agent.as_str().into(),
        path: path.clone(),
        command: command.clone(),
        payload,
        text: text.map(Into::into),
        source: "internal".into(),
        external_id: None,
    };
    let posted = app.hub.execute(caller, route).await.map_err(failed)?;
    Ok(json::sent(&call.agent, call.session.as_ref(), &path, &posted, &command))
}

/// Asks the users who may decide for the active run of the agent. Default deny: without an answer the call fails.
async fn ask(app: &App, caller: &Caller, call: &ToolCall) -> Result<Payload, ToolFailure> {
    let input = AskInput::parse(&call.input)?;
    let digest = canonical::digest(&input.canonical()).expect("a question serialises to JSON");
    let run = match &caller.principal {
        Principal::Agent(credential) => credential.run.clone(),
        _ => None,
    };
    let asked = UserQuestion {
        agent: call.agent.clone(),
        session: call.session.clone(),
        run,
        tool: call.tool.clone(),
        question: input.question,
        digest,
        timeout: input.timeout,
    };
    match app.hub.ask_user(asked).await {
        Ok(approval) => json::answered(approval.decision.as_ref()),
        Err(Refusal::NotFound(EntityKind::Run)) => {
            Err(ToolFailure::new(ToolFailureCode::NoRun, "the agent has no active run in which it could ask"))
        }
        Err(refusal) => Err(refused(&refusal, &call.agent)),
    }
}
