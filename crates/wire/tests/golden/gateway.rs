//! Frames of `/ws/gateway`, in both directions.

use crate::check;
use crate::samples::{
    NOW, agent, agent_id, chunk, decisions, full_message, full_room, full_task, members, message, message_id,
    reply, room, room_id, run, run_events, run_id, task, user_id,
};
use parlor_model::*;
use parlor_wire::agentim::gateway::egress::{self, ContextPeer};
use parlor_wire::agentim::gateway::frames::AnswerFrame;
use parlor_wire::agentim::gateway::frames::answers::Unsupported;
use parlor_wire::agentim::gateway::host;
use parlor_wire::agentim::gateway::ingress::{
    AgentForm, Auth, Device, GatewayMessage, PermissionForm, RelayedAnswer, ReplyTarget, Status,
};
use parlor_wire::frames::encode;
use serde_json::Value;
use std::sync::Arc;

fn started(prompt: RunTrigger, addressed: AddressedBy) -> StartedRun {
    let run = Run { addressed, ..run(RunState::Running) };
    StartedRun { run: Arc::new(run), prompt, room: Some(Arc::new(room())), members: Arc::new([]) }
}

/// A run in a session without a room.
fn prompted(cause: RunCause) -> StartedRun {
    let place = RunPlace::Session { session: SessionId::stored("side"), room: None, owner: user_id() };
    let run = Arc::new(Run { place, cause, ..run(RunState::Running) });
    StartedRun { run, prompt: RunTrigger::Prompt("Go on.".into()), room: None, members: Arc::new([]) }
}

#[test]
fn frames_to_gateways_have_the_same_bytes() {
    let (room_id, agent_id, run_id) = (room_id(), agent_id(), run_id());
    let here = RunContext::Room(room_id.clone());
    let session = RunContext::Session(SessionId::stored("side"));
    let long = Message { text: "é".repeat(8 * 1024).into(), ..message() };
    let earlier = [Arc::new(message()), Arc::new(reply()), Arc::new(long)];
    let members = members();
    let agent = agent();
    let peers: Vec<ContextPeer<'_>> = members
        .iter()
        .map(|member| ContextPeer {
            member: &member.member,
            name: &member.name,
            role: member.role.as_str(),
            role_description: member.role_description.as_deref(),
            agent: member.member.agent().map(|_| (&agent, "online")),
        })
        .collect();
    let message = |message| RunTrigger::Message(Arc::new(message));
    let credential = |what, body: &str| GatewayRequest::Credential { what, body: Payload(body.into()) };
    let body = r#"{"type":"client:x","gatewayId":"g","requestId":"own","n":1.50,"x":null}"#;
    let spawn = |full: bool| {
        GatewayRequest::Spawn(Spawn {
            kind: "codex".into(),
            name: "Coder".into(),
            working_directory: full.then(|| "/w".into()),
            credential: full.then(|| "k".into()),
        })
    };
    let workspace = |request| Inquiry::Workspace(request);
    let inquiry = |room, inquiry| egress::inquiry(&agent_id, room, &user_id(), "q", &inquiry);
    let mut frames = vec![
        egress::authenticated(),
        egress::not_authenticated("Invalid token"),
        egress::refusal(&Refusal::Conflict { first: message_id() }),
        egress::refusal(&Refusal::NotAMember { room: room_id.clone() }),
        egress::send_to_agent(&started(message(full_message()), AddressedBy::Directly), &[]),
        egress::send_to_agent(&started(message(reply()), AddressedBy::ByPolicy), &earlier),
        egress::send_to_agent(&started(RunTrigger::Task(Arc::new(task())), AddressedBy::Directly), &[]),
        egress::send_to_agent(&started(RunTrigger::Task(Arc::new(full_task())), AddressedBy::Directly), &[]),
        egress::send_to_agent(
            &started(RunTrigger::Arrival { name: "Ann".into() }, AddressedBy::Unasked),
            &[],
        ),
        egress::room_context(&agent_id, &room(), &[]),
        egress::room_context(&agent_id, &full_room(), &peers),
        egress::add_to_run(&agent_id, &here, &run_id, &RunId::stored("added"), &full_message()),
        egress::stop_agent(&agent_id, None),
        egress::stop_agent(&agent_id, Some(&here)),
        egress::run_ended(&agent_id, &here, &run_id, &RunOutcome::Interrupted),
        egress::run_resumed(&agent_id, &here, &run_id, (2, 17)),
        egress::remove_agent(&agent_id),
        egress::send_to_agent(&prompted(RunCause::Explicit { prompt: "Go on.".into(), by: user_id() }), &[]),
        egress::send_to_agent(&prompted(RunCause::Batch { messages: vec![message_id()], attempt: 1 }), &[]),
        egress::stop_agent(&agent_id, Some(&session)),
        egress::run_ended(&agent_id, &session, &run_id, &RunOutcome::Complete),
        egress::run_resumed(&agent_id, &session, &run_id, (0, 3)),
        inquiry(Some(&room_id), Inquiry::Command { command: "clear".into(), args: "all".into() }),
        inquiry(Some(&room_id), Inquiry::Info),
        inquiry(None, Inquiry::Info),
        inquiry(Some(&room_id), workspace(WorkspaceRequest::Status)),
        inquiry(Some(&room_id), workspace(WorkspaceRequest::Tree { path: None })),
        inquiry(Some(&room_id), workspace(WorkspaceRequest::Tree { path: Some("src".into()) })),
        inquiry(Some(&room_id), workspace(WorkspaceRequest::File { path: "a".into() })),
        egress::rewind_agent(&agent_id, &room_id, &message_id()),
        egress::gateway_request("q", &spawn(false)),
        egress::gateway_request("q", &spawn(true)),
        egress::gateway_request("q", &credential(CredentialAction::List, "{}")),
        egress::gateway_request("q", &credential(CredentialAction::Add, body)),
        egress::gateway_request("q", &credential(CredentialAction::Manage, body)),
        egress::gateway_request("q", &credential(CredentialAction::StartOauth, body)),
        egress::gateway_request("q", &credential(CredentialAction::CompleteOauth, body)),
    ];
    for decision in decisions() {
        frames.push(egress::permission_response(&agent_id, "q", &decision));
        frames.push(egress::question_response(&agent_id, "q", &decision));
    }
    check("gateway-server.jsonl", &frames);
}

#[test]
fn frames_of_a_parlor_gateway_have_the_same_bytes() {
    let (agent, run, message) = (agent_id(), run_id(), message_id());
    let room = RunContext::Room(room_id());
    let session = RunContext::Session(SessionId::stored("side"));
    let short =
        ReplyTarget { agent: agent.clone(), context: None, message: None, run: None, target_agent: None };
    let full = || ReplyTarget {
        agent: agent.clone(),
        context: Some(room.clone()),
        message: Some(message.clone()),
        run: Some(run.clone()),
        target_agent: Some("other".into()),
    };
    let complete = |text: Option<&str>, chunks, outcome| GatewayMessage::Complete {
        reply: full(),
        text: text.map(Into::into),
        chunks,
        conversation: text.map(|_| "c".into()),
        depth: text.map(|_| 3),
        outcome,
    };
    let form = |full: bool| AgentForm {
        id: agent.clone(),
        name: "Coder".into(),
        kind: "acp".into(),
        working_directory: full.then(|| "/w".into()),
        capabilities: if full { vec!["code".into()] } else { Vec::new() },
        model: full.then(|| "opus".into()),
        slash_commands: full.then(|| Payload(r#"[{"name":"x", "n":1.50}]"#.into())),
        mcp_servers: full.then(|| Payload(r#"["s"]"#.into())),
    };
    let permission = |full: bool| {
        GatewayMessage::Permission(PermissionForm {
            request: "q".into(),
            agent: agent.clone(),
            context: full.then(|| room.clone()),
            tool: "Bash".into(),
            input: Payload(r#"{"b":1.50, "a":null}"#.into()),
            timeout_ms: full.then_some(1000),
        })
    };
    let auth = |full: bool| {
        GatewayMessage::Auth(Auth {
            token: "secret".into(),
            gateway: full.then(|| GatewayId::stored("g")),
            version: full.then(|| "1".into()),
            device: Device {
                hostname: "h".into(),
                platform: "linux".into(),
                arch: "x64".into(),
                node_version: "v".into(),
            },
            ephemeral: full,
            by_room: full,
        })
    };
    let mut messages = vec![
        auth(false),
        auth(true),
        GatewayMessage::Register(form(false)),
        GatewayMessage::Register(form(true)),
        GatewayMessage::Unregister { agent: agent.clone() },
        GatewayMessage::Chunk { reply: short, chunk: chunk(ChunkKind::Text, None) },
        GatewayMessage::Chunk {
            reply: full(),
            chunk: chunk(ChunkKind::ToolUse, Some(r#"{"n":1.50, "x":null}"#)),
        },
        complete(None, Vec::new(), RunOutcome::Complete),
        complete(Some("hi"), vec![chunk(ChunkKind::Thinking, None)], RunOutcome::Failed("broken".into())),
        complete(None, Vec::new(), RunOutcome::Failed("".into())),
        complete(None, Vec::new(), RunOutcome::Interrupted),
        GatewayMessage::Resume { agent: agent.clone(), context: room.clone(), run: run.clone() },
        GatewayMessage::Resume { agent: agent.clone(), context: session, run: run.clone() },
        GatewayMessage::Added {
            agent: agent.clone(),
            context: room.clone(),
            run,
            added: RunId::stored("added"),
        },
        GatewayMessage::Status { agent: agent.clone(), status: Status::Busy, queue_depth: 2 },
        GatewayMessage::Terminal { agent: agent.clone(), context: None, data: "$ ".into() },
        GatewayMessage::Terminal { agent: agent.clone(), context: Some(room.clone()), data: "$ ".into() },
        GatewayMessage::TaskUpdate { task: None, status: "failed".into(), result: None },
        GatewayMessage::TaskUpdate {
            task: Some(TaskId::stored("k")),
            status: "completed".into(),
            result: Some("done".into()),
        },
        permission(false),
        permission(true),
        GatewayMessage::Answer(RelayedAnswer {
            kind: AnswerKind::Spawn,
            agent: None,
            room: None,
            request: None,
            body: Payload(r#"{"type":"gateway:spawn_result", "n":1.50}"#.into()),
        }),
        GatewayMessage::Ping { ts: serde_json::from_str("1.50").unwrap() },
        GatewayMessage::Ping { ts: (NOW.0 / 1000).into() },
    ];
    for (index, event) in run_events().into_iter().enumerate() {
        let (context, message) = ((index > 0).then(|| room.clone()), (index > 0).then(|| message.clone()));
        messages.push(GatewayMessage::RunEvent { agent: agent.clone(), context, message, event });
    }
    let frames: Vec<String> = messages.iter().map(host::egress::write).collect();
    check("gateway-client.jsonl", &frames);
}

#[test]
fn answers_of_a_parlor_gateway_have_the_same_bytes() {
    let (agent_id, room_id, request_id) = ("team/coder", "r", "q");
    let commands: Value = serde_json::from_str(r#"[{"name":"clear"}]"#).unwrap();
    let info = |full: bool| AnswerFrame::AgentInfo {
        agent_id,
        slash_commands: commands.clone(),
        mcp_servers: [],
        permission_level: "interactive",
        model: full.then_some("opus"),
        room_id: full.then_some(room_id),
    };
    let response = serde_json::from_str(r#"{"kind":"status","data":null}"#).unwrap();
    let spawned = |agent_id: Option<&'static str>, error| AnswerFrame::SpawnResult {
        request_id,
        success: agent_id.is_some(),
        agent_id,
        error,
    };
    let unsupported = |request_id| Unsupported { success: false, error: "no", request_id };
    let answers = [
        AnswerFrame::AgentCommandResult {
            agent_id,
            room_id,
            command: "clear",
            success: true,
            message: "Done.",
        },
        info(false),
        info(true),
        AnswerFrame::WorkspaceResponse { agent_id, request_id, response },
        AnswerFrame::RewindResult { agent_id, room_id, success: true },
        spawned(Some(agent_id), None),
        spawned(None, Some("no")),
        AnswerFrame::CredentialList { credentials: [], request_id: None },
        AnswerFrame::CredentialList { credentials: [], request_id: Some(request_id) },
        AnswerFrame::CredentialResult(unsupported(Some(request_id))),
        AnswerFrame::OauthUrl(unsupported(Some(request_id))),
        AnswerFrame::OauthResult(unsupported(None)),
    ];
    check("gateway-answers.jsonl", &answers.iter().map(encode).collect::<Vec<_>>());
}
