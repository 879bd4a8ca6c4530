//! The guide at the other end of a link, read as the hub reads it.

use parlor_agents::{FrameChannel, frame_channel, guide};
use parlor_model::{Activity, ChunkKind, PlanState, RunEvent, StepState, SubagentChange};
use parlor_wire::agentim::gateway::ingress::{GatewayMessage, MOST_CHUNKS, PermissionForm, Status, read};
use parlor_wire::agentim::ingress::FrameLimits;
use parlor_wire::json::JsonLimits;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const LIMITS: FrameLimits =
    FrameLimits { bytes: 256 * 1024, json: JsonLimits { depth: 15, items: MOST_CHUNKS } };

/// The hub's end.
struct Hub {
    link: FrameChannel,
    guide: JoinHandle<()>,
}

impl Hub {
    /// With the guide registered.
    async fn start() -> Self {
        Self::with_room_for(64).await
    }

    async fn with_room_for(frames: usize) -> Self {
        let (here, there) = frame_channel(frames);
        let mut hub = Self { link: here, guide: tokio::spawn(guide(there)) };
        let GatewayMessage::Register(form) = hub.next().await else { panic!("it did not register") };
        assert_eq!((form.id.as_str(), &*form.name, &*form.kind), ("guide", "guide", "guide"));
        hub
    }

    async fn say(&self, frame: Value) {
        self.link.outgoing.send(frame.to_string()).await.unwrap();
    }

    /// Ada mentions the guide.
    async fn ask(&self, room: &str, content: &str) {
        self.ask_as("user", "Ada", room, content).await;
    }

    async fn ask_as(&self, kind: &str, name: &str, room: &str, content: &str) {
        let message = format!("m-{room}");
        self.say(
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
        self.say(frame).await;
    }

    /// The next frame, which must be one that the hub takes.
    async fn next(&mut self) -> GatewayMessage {
        let frame = self.link.incoming.recv().await.expect("the guide is there");
        let value: Value = serde_json::from_str(&frame).unwrap();
        assert!(!has_null(&value), "{frame}");
        read(&frame, &LIMITS).unwrap_or_else(|frame_error| panic!("{frame_error:?}: {frame}"))
    }

    /// Everything up to the end of a reply and the word that the guide is free again; permissions are allowed.
    async fn reply(&mut self) -> Played {
        let mut played = Played::default();
        loop {
            let told = self.next().await;
            if let GatewayMessage::Permission(form) = &told {
                self.decide(form, "allow", None).await;
            }
            let over = matches!(told, GatewayMessage::Status { status: Status::Online, .. });
            played.frames.push(told);
            if over {
                return played;
            }
        }
    }

    async fn play(content: &str) -> Played {
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

#[derive(Default)]
struct Played {
    frames: Vec<GatewayMessage>,
}

impl Played {
    fn streamed(&self, kind: ChunkKind) -> String {
        let chunks = self.frames.iter().filter_map(|told| match told {
            GatewayMessage::Chunk { chunk, .. } if chunk.kind == kind => Some(&*chunk.content),
            _ => None,
        });
        chunks.collect()
    }

    /// How many frames of a kind there are, chunks by their type and events by their kind.
    fn count(&self, kind: &str) -> usize {
        self.frames.iter().filter(|told| name(told) == kind).count()
    }

    fn kinds(&self) -> BTreeSet<&'static str> {
        self.frames.iter().map(name).collect()
    }

    fn events(&self) -> impl Iterator<Item = &RunEvent> {
        self.frames.iter().filter_map(|told| match told {
            GatewayMessage::RunEvent { event, .. } => Some(event),
            _ => None,
        })
    }

    /// What it said in the end, which must be what it streamed.
    fn text(&self) -> String {
        let mut ends = self.frames.iter().filter_map(|told| match told {
            GatewayMessage::Complete { text, chunks, conversation, depth, reply, .. } => {
                assert_eq!((conversation.as_deref(), *depth), (Some("c"), Some(1)));
                assert!(reply.room.is_some() && reply.message.is_some());
                for kind in [ChunkKind::Text, ChunkKind::Thinking, ChunkKind::ToolUse, ChunkKind::Error] {
                    let kept = chunks.iter().filter(|chunk| chunk.kind == kind);
                    let kept: String = kept.map(|chunk| &*chunk.content).collect();
                    assert_eq!(kept, self.streamed(kind), "{kind:?}");
                }
                text.as_deref()
            }
            _ => None,
        });
        let text = ends.next().expect("it ended").to_owned();
        assert_eq!(ends.next(), None, "it ended once");
        assert_eq!(text, self.streamed(ChunkKind::Text));
        text
    }
}

fn name(told: &GatewayMessage) -> &'static str {
    match told {
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

/// What a request shows beside text, and beside what every reply has.
#[track_caller]
fn check(content: &str, played: &Played, expected: &[&str]) {
    let usual = ["busy", "text", "complete", "online", "status"];
    let shown: Vec<&str> = played.kinds().into_iter().filter(|kind| !usual.contains(kind)).collect();
    assert_eq!(shown, expected, "{content}");
    let first = played.frames.first().map(name);
    assert_eq!(first, Some("busy"), "{content}: busy before anything else");
    assert!(!played.text().is_empty(), "{content}");
}

#[tokio::test(start_paused = true)]
async fn each_word_shows_what_it_promises() {
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
async fn everything_is_every_chunk_and_every_event_within_a_minute() {
    let began = Instant::now();
    let played = Hub::play("@guide show me everything").await;
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
    check("everything", &played, &all);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let seen = |activity: Activity| {
        played
            .events()
            .any(|event| matches!(event, RunEvent::Status { activity: seen, .. } if *seen == activity))
    };
    for activity in Activity::ALL {
        assert!(seen(*activity), "{activity:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_goes_through_every_state_and_a_subagent_comes_back() {
    let played = Hub::play("@guide plan").await;
    let plans: Vec<_> = played
        .events()
        .filter_map(|event| match event {
            RunEvent::Plan(plan) => Some(plan),
            _ => None,
        })
        .collect();
    // What people reject is not its to say.
    for state in PlanState::ALL.iter().filter(|state| **state != PlanState::Rejected) {
        assert!(plans.iter().any(|plan| plan.state == *state), "{state:?}");
    }
    for state in StepState::ALL {
        assert!(plans.iter().flat_map(|plan| &plan.steps).any(|step| step.state == *state), "{state:?}");
    }
    let played = Hub::play("@guide subagent").await;
    let changes: Vec<_> = played
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
async fn who_says_hello_is_greeted_by_name_and_offered_four_things_to_try() {
    let played = Hub::play("hello @guide").await;
    let text = played.text();
    assert!(text.starts_with("Hello Ada, and welcome!"), "{text}");
    let offers: Vec<&str> =
        text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(offers.len(), 4);
    for offer in offers {
        let wanted = offer.split('`').nth(1).unwrap();
        assert!(Hub::play(wanted).await.kinds().contains("status"), "{offer} is no offer");
    }
    assert!(played.count("text") > 20, "it comes in small pieces");
    assert_eq!(played.text(), Hub::play("hello @guide").await.text(), "it says the same every time");
}

#[tokio::test(start_paused = true)]
async fn where_it_hears_everything_it_is_brief() {
    let mut hub = Hub::start().await;
    hub.say(json!({ "type": "server:send_to_agent", "agentId": "guide", "roomId": "r", "messageId": "m",
        "content": "good morning everybody", "senderName": "Ada", "senderType": "user",
        "routingMode": "broadcast", "conversationId": "c", "depth": 1 }))
        .await;
    assert!(hub.reply().await.text().starts_with("I am only the guide here"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_called_by_accident() {
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
async fn an_answer_about_a_permission_is_told_whatever_it_is() {
    for (decision, reason, expected) in [
        ("allow", None, "Allowed:"),
        ("deny", None, "Denied: I leave the fern alone. A no"),
        ("deny", Some("`@coder` waters it"), "You said: `'@coder' waters it`."),
        ("timeout", None, "Nobody answered in time"),
    ] {
        let mut hub = Hub::start().await;
        hub.ask("r", "@guide permission").await;
        let form = hub.permission().await;
        assert_eq!((&*form.tool, form.timeout_ms), ("WaterPlant", Some(120_000)));
        // An answer to something else changes nothing.
        let other = PermissionForm {
            request: format!("{}0", form.request).into(),
            input: form.input.clone(),
            ..form
        };
        hub.decide(&other, "allow", None).await;
        let asked = other.request.strip_suffix('0').unwrap().into();
        hub.decide(&PermissionForm { request: asked, ..other }, decision, reason).await;
        let rest = hub.reply().await;
        assert!(rest.streamed(ChunkKind::Text).contains(expected), "{}", rest.streamed(ChunkKind::Text));
    }
}

#[tokio::test(start_paused = true)]
async fn no_answer_at_all_is_a_no_in_the_end() {
    let mut hub = Hub::start().await;
    hub.ask("r", "@guide permission").await;
    hub.permission().await;
    let asked = Instant::now();
    let rest = hub.reply().await;
    assert!(rest.streamed(ChunkKind::Text).starts_with("Nobody answered in time"));
    assert!(asked.elapsed() > Duration::from_secs(120));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_reply_at_once_and_only_there() {
    let mut hub = Hub::start().await;
    hub.ask("a", "@guide slow").await;
    hub.ask("b", "@guide permission").await;
    hub.permission().await;
    let began = Instant::now();
    hub.say(json!({ "type": "server:stop_agent", "agentId": "guide", "roomId": "a" })).await;
    // What was on its way when it was told to stop has arrived by now.
    tokio::task::yield_now().await;
    while hub.link.incoming.try_recv().is_ok() {}
    let quiet = timeout(Duration::from_secs(100), hub.next()).await;
    assert!(quiet.is_err(), "{quiet:?}: room b waits for its answer, and room a is quiet");
    hub.say(json!({ "type": "server:stop_agent", "agentId": "guide" })).await;
    assert_eq!(name(&hub.next().await), "complete", "it says that nothing more comes");
    assert_eq!(name(&hub.next().await), "online", "and nothing does");
    assert!(began.elapsed() < Duration::from_secs(101));
    hub.ask("a", "@guide task").await;
    check("task", &hub.reply().await, &["task"]);
}

#[tokio::test(start_paused = true)]
async fn it_answers_in_many_rooms_at_once_and_mixes_nothing_up() {
    let mut hub = Hub::with_room_for(100).await;
    let rooms: Vec<String> = (0..50).map(|room| format!("r{room}")).collect();
    for room in &rooms {
        hub.ask(room, "@guide terminal").await;
    }
    let began = Instant::now();
    let mut told = hub.reply().await.frames;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}: not one after the other", began.elapsed());
    for room in &rooms {
        let frames = told.extract_if(.., |told| place(told) == Some(room)).collect();
        let played = Played { frames };
        assert_eq!((played.count("terminal"), played.count("complete")), (4, 1), "{room}");
        played.text();
    }
    assert_eq!(told.iter().map(name).collect::<Vec<_>>(), ["busy", "online"]);
}

#[tokio::test(start_paused = true)]
async fn a_narrow_link_slows_it_down_and_loses_nothing() {
    let mut hub = Hub::with_room_for(1).await;
    for room in ["a", "b", "c"] {
        hub.ask(room, "@guide everything").await;
    }
    let mut told = hub.reply().await.frames;
    for room in ["a", "b", "c"] {
        let frames = told.extract_if(.., |told| place(told) == Some(room)).collect();
        assert!(Played { frames }.text().contains("That was everything."), "{room}");
    }
}

fn place(told: &GatewayMessage) -> Option<&str> {
    let room = match told {
        GatewayMessage::Chunk { reply, .. } | GatewayMessage::Complete { reply, .. } => &reply.room,
        GatewayMessage::Terminal { room, .. } | GatewayMessage::RunEvent { room, .. } => room,
        GatewayMessage::Permission(form) => &form.room,
        _ => return None,
    };
    room.as_ref().map(|room| room.as_str())
}

#[tokio::test(start_paused = true)]
async fn the_same_turn_given_twice_is_answered_once() {
    let mut hub = Hub::start().await;
    hub.ask("r", "@guide task").await;
    hub.ask("r", "@guide task").await;
    assert_eq!(hub.reply().await.count("task"), 1);
}

#[tokio::test(start_paused = true)]
async fn who_asks_what_the_guide_cannot_do_is_not_left_waiting() {
    let mut hub = Hub::start().await;
    hub.say(json!({ "type": "server:agent_command", "agentId": "guide", "roomId": "r", "command": "clear", "args": "", "userId": "u" })).await;
    assert!(matches!(hub.next().await, GatewayMessage::Answer(_)));
    hub.say(json!({ "type": "server:query_agent_info", "agentId": "guide" })).await;
    assert!(matches!(hub.next().await, GatewayMessage::Answer(_)));
    hub.say(json!({ "type": "server:hologram" })).await;
    hub.link.outgoing.send("no frame".into()).await.unwrap();
    hub.ask("r", "@guide task").await;
    assert_eq!(hub.reply().await.count("task"), 1);
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_its_link_or_when_it_is_removed() {
    let hub = Hub::start().await;
    hub.ask("r", "@guide slow").await;
    drop(hub.link);
    hub.guide.await.unwrap();
    let hub = Hub::start().await;
    hub.say(json!({ "type": "server:remove_agent", "agentId": "guide" })).await;
    hub.guide.await.unwrap();
}
