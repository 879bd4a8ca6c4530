//! Tests the guide over a frame channel; every frame is parsed as the hub parses it.

use parlor_agents::{FrameChannel, frame_channel, guide};
use parlor_model::{Activity, ChunkKind, PlanState, RunEvent, StepState, SubagentChange};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, MAX_CHUNKS, PermissionForm, Status, read};
use parlor_wire::agentim::ingress::FrameLimits;
use parlor_wire::json::JsonLimits;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const LIMITS: FrameLimits =
    FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MAX_CHUNKS } };

/// The hub's end of the channel.
struct Hub {
    channel: FrameChannel,
    guide: JoinHandle<()>,
}

impl Hub {
    /// Starts the guide and waits for its registration.
    async fn start() -> Self {
        Self::with_capacity(64).await
    }

    async fn with_capacity(frames: usize) -> Self {
        let (hub_end, guide_end) = frame_channel(frames);
        let mut hub = Self { channel: hub_end, guide: tokio::spawn(guide(guide_end)) };
        let GatewayMessage::Register(form) = hub.next().await else { panic!("the guide did not register") };
        assert_eq!((form.id.as_str(), &*form.name, &*form.kind), ("guide", "guide", "guide"));
        hub
    }

    async fn send(&self, frame: Value) {
        self.channel.outgoing.send(frame.to_string()).await.unwrap();
    }

    /// Sends a message of the user Ada to the guide.
    async fn ask(&self, room: &str, content: &str) {
        self.ask_as("user", "Ada", room, content).await;
    }

    async fn ask_as(&self, kind: &str, name: &str, room: &str, content: &str) {
        let message = format!("m-{room}");
        self.send(
            json!({ "type": "server:send_to_agent", "agentId": "guide", "roomId": room, "messageId": message,
            "content": content, "senderName": name, "senderType": kind, "routingMode": "direct",
            "conversationId": "c", "depth": 1 }),
        )
        .await;
    }

    async fn decide(&self, form: &PermissionForm, decision: &str, reason: Option<&str>) {
        let mut frame = json!({ "type": "server:permission_response", "requestId": form.request,
            "agentId": "guide", "decision": decision });
        if let Some(reason) = reason {
            frame["denyReason"] = reason.into();
        }
        self.send(frame).await;
    }

    /// Receives the next frame and checks that the hub would accept it.
    async fn next(&mut self) -> GatewayMessage {
        let frame = self.channel.incoming.recv().await.expect("the guide keeps the channel open");
        let value: Value = serde_json::from_str(&frame).unwrap();
        assert!(!has_null(&value), "{frame}");
        read(&frame, &LIMITS).unwrap_or_else(|frame_error| panic!("{frame_error:?}: {frame}"))
    }

    /// Collects all frames until the guide is online again, and allows every permission request.
    async fn reply(&mut self) -> ReplyFrames {
        let mut reply_frames = ReplyFrames::default();
        loop {
            let frame = self.next().await;
            if let GatewayMessage::Permission(form) = &frame {
                self.decide(form, "allow", None).await;
            }
            let is_last = matches!(frame, GatewayMessage::Status { status: Status::Online, .. });
            reply_frames.frames.push(frame);
            if is_last {
                return reply_frames;
            }
        }
    }

    async fn play(content: &str) -> ReplyFrames {
        let mut hub = Self::start().await;
        hub.ask("r", content).await;
        hub.reply().await
    }

    async fn permission(&mut self) -> PermissionForm {
        loop {
            if let GatewayMessage::Permission(form) = self.next().await {
                return form;
            }
        }
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// The frames of one or more replies.
#[derive(Default)]
struct ReplyFrames {
    frames: Vec<GatewayMessage>,
}

impl ReplyFrames {
    fn streamed(&self, kind: ChunkKind) -> String {
        let chunks = self.frames.iter().filter_map(|frame| match frame {
            GatewayMessage::Chunk { chunk, .. } if chunk.kind == kind => Some(&*chunk.content),
            _ => None,
        });
        chunks.collect()
    }

    /// Number of frames of a kind: chunks by their type, events by their kind.
    fn count(&self, kind: &str) -> usize {
        self.frames.iter().filter(|frame| name(frame) == kind).count()
    }

    fn kinds(&self) -> BTreeSet<&'static str> {
        self.frames.iter().map(name).collect()
    }

    fn events(&self) -> impl Iterator<Item = &RunEvent> {
        self.frames.iter().filter_map(|frame| match frame {
            GatewayMessage::RunEvent { event, .. } => Some(event),
            _ => None,
        })
    }

    /// The final text of the reply; checks that it equals the streamed chunks.
    fn text(&self) -> String {
        let mut ends = self.frames.iter().filter_map(|frame| match frame {
            GatewayMessage::Complete { text, chunks, conversation, depth, reply, .. } => {
                assert_eq!((conversation.as_deref(), *depth), (Some("c"), Some(1)));
                assert!(reply.context.is_some() && reply.message.is_some());
                for kind in [ChunkKind::Text, ChunkKind::Thinking, ChunkKind::ToolUse, ChunkKind::Error] {
                    let stored = chunks.iter().filter(|chunk| chunk.kind == kind);
                    let stored: String = stored.map(|chunk| &*chunk.content).collect();
                    assert_eq!(stored, self.streamed(kind), "{kind:?}");
                }
                text.as_deref()
            }
            _ => None,
        });
        let text = ends.next().expect("the reply was completed").to_owned();
        assert_eq!(ends.next(), None, "the reply is completed once");
        assert_eq!(text, self.streamed(ChunkKind::Text));
        text
    }
}

fn name(frame: &GatewayMessage) -> &'static str {
    match frame {
        GatewayMessage::Chunk { chunk, .. } => chunk.kind.as_str(),
        GatewayMessage::Complete { .. } => "complete",
        GatewayMessage::Status { status: Status::Busy, .. } => "busy",
        GatewayMessage::Status { .. } => "online",
        GatewayMessage::Terminal { .. } => "terminal",
        GatewayMessage::Permission(_) => "permission",
        GatewayMessage::RunEvent { event, .. } => match event {
            RunEvent::Plan(_) => "plan",
            RunEvent::Questions(_) => "question",
            RunEvent::Usage(_) => "usage",
            RunEvent::Subagent(_) => "subagent",
            RunEvent::Changes(_) => "changes",
            RunEvent::ToolProgress { .. } => "tool_progress",
            RunEvent::ModelFallback { .. } => "model_fallback",
            RunEvent::Task { .. } => "task",
            RunEvent::Status { .. } => "status",
        },
        _ => "other",
    }
}

/// Checks the kinds of frames in a reply, besides text and the frames that every reply has.
#[track_caller]
fn check(content: &str, reply_frames: &ReplyFrames, expected: &[&str]) {
    let usual = ["busy", "text", "complete", "online", "status"];
    let shown: Vec<&str> = reply_frames.kinds().into_iter().filter(|kind| !usual.contains(kind)).collect();
    assert_eq!(shown, expected, "{content}");
    let first = reply_frames.frames.first().map(name);
    assert_eq!(first, Some("busy"), "{content}: the first frame is the status busy");
    assert!(!reply_frames.text().is_empty(), "{content}");
}

#[tokio::test(start_paused = true)]
async fn each_keyword_plays_its_demo() {
    for (content, expected) in [
        ("@guide think", &["thinking"][..]),
        ("@guide tool", &["tool_progress", "tool_result", "tool_use"]),
        ("@guide permission", &["permission", "tool_result", "tool_use"]),
        ("@guide task", &["task"]),
        ("@guide question", &["question"]),
        ("@guide plan", &["plan"]),
        ("@guide subagent", &["subagent"]),
        ("@guide usage", &["usage"]),
        ("@guide changes", &["changes", "workspace_status"]),
        ("@guide fallback", &["model_fallback"]),
        ("@guide error", &["error"]),
        ("@guide terminal", &["terminal"]),
        ("@guide long", &[]),
        ("@guide slow", &[]),
        ("@guide chain @coder", &[]),
        ("@guide fallback and task", &["model_fallback", "task"]),
    ] {
        check(content, &Hub::play(content).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn everything_has_every_chunk_and_every_event_within_a_minute() {
    let started = Instant::now();
    let reply_frames = Hub::play("@guide show me everything").await;
    let all = [
        "changes",
        "error",
        "model_fallback",
        "permission",
        "plan",
        "question",
        "subagent",
        "task",
        "terminal",
        "thinking",
        "tool_progress",
        "tool_result",
        "tool_use",
        "usage",
        "workspace_status",
    ];
    check("everything", &reply_frames, &all);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let seen = |activity: Activity| {
        reply_frames
            .events()
            .any(|event| matches!(event, RunEvent::Status { activity: seen, .. } if *seen == activity))
    };
    for activity in Activity::ALL {
        assert!(seen(*activity), "{activity:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_goes_through_every_state_and_a_subagent_returns() {
    let reply_frames = Hub::play("@guide plan").await;
    let plans: Vec<_> = reply_frames
        .events()
        .filter_map(|event| match event {
            RunEvent::Plan(plan) => Some(plan),
            _ => None,
        })
        .collect();
    // Only a user can reject a plan, so the guide never sends that state.
    for state in PlanState::ALL.iter().filter(|state| **state != PlanState::Rejected) {
        assert!(plans.iter().any(|plan| plan.state == *state), "{state:?}");
    }
    for state in StepState::ALL {
        assert!(plans.iter().flat_map(|plan| &plan.steps).any(|step| step.state == *state), "{state:?}");
    }
    let reply_frames = Hub::play("@guide subagent").await;
    let changes: Vec<_> = reply_frames
        .events()
        .filter_map(|event| match event {
            RunEvent::Subagent(subagent) => Some(&subagent.change),
            _ => None,
        })
        .collect();
    assert!(
        matches!(changes[..], [SubagentChange::Spawned { .. }, SubagentChange::Returned { .. }]),
        "{changes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_greeting_is_answered_by_name_with_four_things_to_try() {
    let reply_frames = Hub::play("hello @guide").await;
    let text = reply_frames.text();
    assert!(text.starts_with("Hello Ada, and welcome!"), "{text}");
    let offers: Vec<&str> =
        text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(offers.len(), 4);
    for offer in offers {
        let request = offer.split('`').nth(1).unwrap();
        assert!(Hub::play(request).await.kinds().contains("status"), "{offer} does not start a demo");
    }
    assert!(reply_frames.count("text") > 20, "the text is sent in small chunks");
    assert_eq!(
        reply_frames.text(),
        Hub::play("hello @guide").await.text(),
        "the reply is the same every time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_mention_gets_a_short_reply() {
    let mut hub = Hub::start().await;
    hub.send(json!({ "type": "server:send_to_agent", "agentId": "guide", "roomId": "r", "messageId": "m",
        "content": "good morning everybody", "senderName": "Ada", "senderType": "user",
        "routingMode": "broadcast", "conversationId": "c", "depth": 1 }))
        .await;
    assert!(hub.reply().await.text().starts_with("I am only the guide here"));
}

#[tokio::test(start_paused = true)]
async fn no_agent_is_mentioned_by_accident() {
    let mut hub = Hub::start().await;
    hub.ask_as("user", "@coder", "r", "@guide tell me about @reviewer and his many long and winding stories")
        .await;
    let text = hub.reply().await.text();
    let calls = text.split('`').step_by(2).any(|outside_code| outside_code.contains('@'));
    assert!(!calls, "{text}");
    assert!(Hub::play("@guide chain @coder").await.text().contains("@coder:"));
    hub.ask_as("agent", "coder", "s", "@guide hello").await;
    assert!(hub.reply().await.text().starts_with("Hello coder."));
}

#[tokio::test(start_paused = true)]
async fn every_decision_on_a_permission_is_reported() {
    for (decision, reason, expected) in [
        ("allow", None, "Allowed:"),
        ("deny", None, "Denied: I leave the fern alone. You do not"),
        ("deny", Some("`@coder` waters it"), "You said: `'@coder' waters it`."),
        ("timeout", None, "Nobody answered in time"),
    ] {
        let mut hub = Hub::start().await;
        hub.ask("r", "@guide permission").await;
        let form = hub.permission().await;
        assert_eq!((&*form.tool, form.timeout_ms), ("WaterPlant", Some(120_000)));
        // A decision on another request has no effect.
        let other = PermissionForm {
            request: format!("{}0", form.request).into(),
            input: form.input.clone(),
            ..form
        };
        hub.decide(&other, "allow", None).await;
        let request = other.request.strip_suffix('0').unwrap().into();
        hub.decide(&PermissionForm { request, ..other }, decision, reason).await;
        let rest = hub.reply().await;
        assert!(rest.streamed(ChunkKind::Text).contains(expected), "{}", rest.streamed(ChunkKind::Text));
    }
}

#[tokio::test(start_paused = true)]
async fn a_permission_without_a_decision_is_denied_in_the_end() {
    let mut hub = Hub::start().await;
    hub.ask("r", "@guide permission").await;
    hub.permission().await;
    let requested = Instant::now();
    let rest = hub.reply().await;
    assert!(rest.streamed(ChunkKind::Text).starts_with("Nobody answered in time"));
    assert!(requested.elapsed() > Duration::from_secs(120));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_reply_at_once_and_only_in_its_room() {
    let mut hub = Hub::start().await;
    hub.ask("a", "@guide slow").await;
    hub.ask("b", "@guide permission").await;
    hub.permission().await;
    let started = Instant::now();
    hub.send(json!({ "type": "server:stop_agent", "agentId": "guide", "roomId": "a" })).await;
    // Discards the frames that were sent before the stop was read.
    tokio::task::yield_now().await;
    while hub.channel.incoming.try_recv().is_ok() {}
    let quiet = timeout(Duration::from_secs(100), hub.next()).await;
    assert!(quiet.is_err(), "{quiet:?}: room b waits for a decision, and room a is stopped");
    hub.send(json!({ "type": "server:stop_agent", "agentId": "guide" })).await;
    assert_eq!(name(&hub.next().await), "complete", "a stopped reply is completed");
    assert_eq!(name(&hub.next().await), "online", "nothing follows the completion");
    assert!(started.elapsed() < Duration::from_secs(101));
    hub.ask("a", "@guide task").await;
    check("task", &hub.reply().await, &["task"]);
}

#[tokio::test(start_paused = true)]
async fn concurrent_replies_in_many_rooms_are_not_mixed_up() {
    let mut hub = Hub::with_capacity(100).await;
    let rooms: Vec<String> = (0..50).map(|room| format!("r{room}")).collect();
    for room in &rooms {
        hub.ask(room, "@guide terminal").await;
    }
    let started = Instant::now();
    let mut sent = hub.reply().await.frames;
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}: the replies are concurrent",
        started.elapsed()
    );
    for room in &rooms {
        let frames = sent.extract_if(.., |frame| room_of(frame) == Some(room)).collect();
        let reply_frames = ReplyFrames { frames };
        assert_eq!((reply_frames.count("terminal"), reply_frames.count("complete")), (4, 1), "{room}");
        reply_frames.text();
    }
    assert_eq!(sent.iter().map(name).collect::<Vec<_>>(), ["busy", "online"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_channel_delays_the_guide_and_loses_nothing() {
    let mut hub = Hub::with_capacity(1).await;
    for room in ["a", "b", "c"] {
        hub.ask(room, "@guide everything").await;
    }
    let mut sent = hub.reply().await.frames;
    for room in ["a", "b", "c"] {
        let frames = sent.extract_if(.., |frame| room_of(frame) == Some(room)).collect();
        assert!(ReplyFrames { frames }.text().contains("That was everything."), "{room}");
    }
}

fn room_of(frame: &GatewayMessage) -> Option<&str> {
    let context = match frame {
        GatewayMessage::Chunk { reply, .. } | GatewayMessage::Complete { reply, .. } => &reply.context,
        GatewayMessage::Terminal { context, .. } | GatewayMessage::RunEvent { context, .. } => context,
        GatewayMessage::Permission(form) => &form.context,
        _ => return None,
    };
    context.as_ref()?.room().map(|room| room.as_str())
}

#[tokio::test(start_paused = true)]
async fn the_same_run_sent_twice_is_answered_once() {
    let mut hub = Hub::start().await;
    hub.ask("r", "@guide task").await;
    hub.ask("r", "@guide task").await;
    assert_eq!(hub.reply().await.count("task"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_request_gets_an_answer() {
    let mut hub = Hub::start().await;
    hub.send(json!({ "type": "server:agent_command", "agentId": "guide", "roomId": "r", "command": "clear", "args": "", "userId": "u" })).await;
    assert!(matches!(hub.next().await, GatewayMessage::Answer(_)));
    hub.send(json!({ "type": "server:query_agent_info", "agentId": "guide" })).await;
    assert!(matches!(hub.next().await, GatewayMessage::Answer(_)));
    hub.send(json!({ "type": "server:hologram" })).await;
    hub.channel.outgoing.send("not a frame".into()).await.unwrap();
    hub.ask("r", "@guide task").await;
    assert_eq!(hub.reply().await.count("task"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_guide_ends_with_its_channel_or_when_it_is_removed() {
    let hub = Hub::start().await;
    hub.ask("r", "@guide slow").await;
    drop(hub.channel);
    hub.guide.await.unwrap();
    let hub = Hub::start().await;
    hub.send(json!({ "type": "server:remove_agent", "agentId": "guide" })).await;
    hub.guide.await.unwrap();
}
