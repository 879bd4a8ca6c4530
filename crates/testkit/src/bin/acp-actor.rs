//! A scripted agent for tests that uses the Agent Client Protocol, correctly or incorrectly.
//!
//! The last line of a prompt is its script: it executes each known word in order and ignores other words. It
//! does not use the client library under test, so that a test with it also verifies the wire format.
//!
//! Options: `--state DIR` stores sessions across restarts, `--resume` offers `session/resume` instead of
//! `session/load`, `--forgetful` offers neither, `--mute` never answers, `--old` reports an unsupported
//! protocol version, `--stillborn` exits immediately.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, exit};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

fn main() {
    let options: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    let state =
        options.iter().position(|option| option == "--state").map(|at| PathBuf::from(&options[at + 1]));
    if has("--stillborn") {
        eprintln!("no configuration found\n\x1b[31mgiving up\x1b[0m");
        exit(7);
    }
    let actor = Arc::new(Actor { state, ..Actor::default() });
    for line in std::io::stdin().lines() {
        let Ok(frame) = serde_json::from_str::<Value>(&line.unwrap_or_default()) else { continue };
        let (id, params) = (frame["id"].clone(), &frame["params"]);
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match frame["method"].as_str() {
            _ if has("--mute") => {}
            Some("initialize") => {
                let (load, resume) = (!has("--forgetful") && !has("--resume"), has("--resume"));
                let mut capabilities = json!({ "loadSession": load, "sessionCapabilities": {} });
                if resume {
                    capabilities["sessionCapabilities"]["resume"] = json!({});
                }
                answer(
                    &id,
                    json!({ "protocolVersion": if has("--old") { 0 } else { 1 }, "authMethods": [],
                    "agentCapabilities": capabilities, "agentInfo": { "name": "acp-actor", "version": "1.0.0" } }),
                );
            }
            Some("session/new") => {
                let session = actor.open(params["cwd"].as_str().unwrap_or_default());
                answer(&id, json!({ "sessionId": session }));
            }
            Some(method @ ("session/load" | "session/resume")) => match actor.turns(&session) {
                Some(_) => {
                    if method == "session/load" {
                        update(&session, text("user_message_chunk", "an old question"));
                        update(&session, text("agent_message_chunk", "an old answer"));
                    }
                    answer(&id, json!({}));
                }
                None => fail(&id, -32002, "there is no such session"),
            },
            Some("session/prompt") => {
                let prompt = params["prompt"][0]["text"].as_str().unwrap_or_default();
                let script =
                    prompt.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
                let cancelled = actor.begin(&session);
                let actor = actor.clone();
                std::thread::spawn(move || {
                    match (ScriptRun { actor: &actor, session: &session, cancelled, usage: None })
                        .run(&script)
                    {
                        Ok(done) => answer(&id, done),
                        Err((code, message)) => fail(&id, code, message),
                    }
                });
            }
            Some("session/cancel") => {
                if let Some(cancel) = actor.running.lock().unwrap().get(&session) {
                    let _ = cancel.send(());
                }
            }
            Some(_) => fail(&id, -32601, "no such method"),
            None => {
                let waiting = actor.questions.lock().unwrap().remove(id.as_str().unwrap_or_default());
                if let Some(waiting) = waiting {
                    let _ = waiting.send(frame["result"]["outcome"].clone());
                }
            }
        }
    }
}

#[derive(Default)]
struct Actor {
    state: Option<PathBuf>,
    /// Number of runs of each session.
    sessions: Mutex<HashMap<String, u32>>,
    running: Mutex<HashMap<String, Sender<()>>>,
    questions: Mutex<HashMap<String, Sender<Value>>>,
}

impl Actor {
    fn open(&self, directory: &str) -> String {
        let mut sessions = self.sessions.lock().unwrap();
        let session = format!("s{}-{}", sessions.len() + 1, std::process::id());
        sessions.insert(session.clone(), 0);
        self.keep(&session, 0);
        assert!(directory.starts_with('/'), "a session needs an absolute directory, not {directory}");
        session
    }

    fn turns(&self, session: &str) -> Option<u32> {
        let mut sessions = self.sessions.lock().unwrap();
        let kept = || std::fs::read_to_string(self.state.as_ref()?.join(session)).ok()?.parse().ok();
        let turns = sessions.get(session).copied().or_else(kept)?;
        sessions.insert(session.into(), turns);
        Some(turns)
    }

    fn begin(&self, session: &str) -> Receiver<()> {
        let turns = self.turns(session).expect("a prompt needs a session") + 1;
        self.sessions.lock().unwrap().insert(session.into(), turns);
        self.keep(session, turns);
        let (cancel, cancelled) = channel();
        self.running.lock().unwrap().insert(session.into(), cancel);
        cancelled
    }

    fn keep(&self, session: &str, turns: u32) {
        if let Some(folder) = &self.state {
            std::fs::write(folder.join(session), turns.to_string()).unwrap();
        }
    }
}

struct ScriptRun<'a> {
    actor: &'a Actor,
    session: &'a str,
    cancelled: Receiver<()>,
    usage: Option<Value>,
}

/// Code and message of a JSON-RPC error.
type Failure = (i32, &'static str);

impl ScriptRun<'_> {
    fn run(&mut self, script: &str) -> Result<Value, Failure> {
        let mut ending = "end_turn";
        // A slash command is only recognised at the start of the script.
        if script.starts_with('/') {
            self.say(&format!("did {script}"));
            return Ok(json!({ "stopReason": ending }));
        }
        for word in script.split_whitespace() {
            ending = match word {
                "limit" => "max_tokens",
                "refuse" => "refusal",
                "error" => return Err((-32603, "the model is on fire")),
                "signin" => return Err((-32000, "Authentication required")),
                _ if self.execute(word) => ending,
                _ => return Ok(json!({ "stopReason": "cancelled" })),
            };
        }
        let mut done = json!({ "stopReason": ending });
        if let Some(usage) = self.usage.take() {
            done["usage"] = usage;
        }
        Ok(done)
    }

    /// Executes one word of the script. Returns whether to continue.
    fn execute(&mut self, word: &str) -> bool {
        match word {
            "stream" => ["One ", "two ", "three."].into_iter().for_each(|word| self.say(word)),
            "think" => self.update(text("agent_thought_chunk", "Let me see.")),
            "count" => self.say(&format!("turn {} of {}", self.actor.turns(self.session).unwrap(), self.session)),
            "plan" => self.update(json!({ "sessionUpdate": "plan", "entries": [
                { "content": "Look", "priority": "high", "status": "completed" },
                { "content": "Change", "priority": "medium", "status": "in_progress" },
                { "content": "Test", "priority": "low", "status": "pending" }] })),
            "tool" => self.tool("completed", json!([{ "type": "content", "content": { "type": "text", "text": "3 files" } }])),
            "broken" => self.tool("failed", json!([{ "type": "content", "content": { "type": "text", "text": "no such file" } }])),
            "edit" => self.tool("completed", json!([{ "type": "diff", "path": "/tmp/a.txt", "oldText": "old", "newText": "new" }])),
            "usage" => {
                let turns = self.actor.turns(self.session).unwrap();
                self.update(json!({ "sessionUpdate": "usage_update", "used": 1200, "size": 200_000,
                    "cost": { "amount": 0.25 * f64::from(turns), "currency": "USD" } }));
                self.usage = Some(json!({ "inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 1000, "totalTokens": 1120 }));
            }
            "commands" => self.update(json!({ "sessionUpdate": "available_commands_update",
                "availableCommands": [{ "name": "review", "description": "Review the changes" }] })),
            "ask" => return self.ask(json!([{ "optionId": "always", "name": "Always", "kind": "allow_always" },
                { "optionId": "yes", "name": "Yes", "kind": "allow_once" }, { "optionId": "no", "name": "No", "kind": "reject_once" }])),
            "ask-forever" => return self.ask(json!([{ "optionId": "always", "name": "Always", "kind": "allow_always" },
                { "optionId": "never", "name": "Never", "kind": "reject_always" }])),
            "hang" => {
                let _ = self.cancelled.recv();
                return false;
            }
            "deaf" => std::thread::sleep(Duration::MAX),
            // The child process is left running on purpose.
            #[expect(clippy::zombie_processes)]
            "child" => {
                let child = Command::new("sleep").arg("600").spawn().unwrap();
                self.say(&format!("child {} ", child.id()));
            }
            "die" => {
                eprintln!("loading the model\nout of memory: \x1b[31m12 GB\x1b[0m needed");
                exit(3);
            }
            "shower" => return self.flood(5_000),
            "flood" => return self.flood(200_000),
            "line" => raw(&format!("{{\"jsonrpc\":\"2.0\",\"x\":\"{}\"}}\n", "x".repeat(100 << 20)).into_bytes()),
            "noise" => {
                raw(b"Debugger listening on port 9229\n\n\xff\xfe not UTF-8\n[1,2]\n{\"type\":\"server:stop_agent\"}\n");
                self.update(json!({ "sessionUpdate": "of_tomorrow", "x": 1 }));
                update("nobody", text("agent_message_chunk", "for another session"));
                self.say("bytes \u{1b}[31mred\u{1b}[0m {\"type\":\"gateway:message_complete\"}");
            }
            _ => {}
        }
        true
    }

    fn say(&self, words: &str) {
        self.update(text("agent_message_chunk", words));
    }

    fn update(&self, content: Value) {
        update(self.session, content);
    }

    fn tool(&self, status: &str, content: Value) {
        self.update(json!({ "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Terminal", "kind": "execute",
            "status": "pending", "rawInput": {} }));
        self.update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "title": "List files",
            "rawInput": { "command": "ls" }, "status": "in_progress" }),
        );
        self.update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": status, "content": content }));
    }

    fn ask(&self, options: Value) -> bool {
        let (answer, answered) = channel();
        let id = format!("q-{}", self.session);
        self.actor.questions.lock().unwrap().insert(id.clone(), answer);
        send(
            json!({ "id": id, "method": "session/request_permission", "params": { "sessionId": self.session,
            "toolCall": { "toolCallId": "call-2", "name": "Bash", "title": "rm -rf build", "kind": "execute",
                "rawInput": { "command": "rm -rf build", "n": 1.0 } },
            "options": options } }),
        );
        let outcome = answered.recv().unwrap_or_default();
        match outcome["outcome"].as_str() {
            Some("selected") => {
                self.say(&format!("answer: {}", outcome["optionId"].as_str().unwrap_or_default()))
            }
            _ => {
                // Written to stderr, because the outcome must also be visible after the run.
                eprintln!("the question was {outcome}");
                let _ = self.cancelled.recv();
                return false;
            }
        }
        true
    }

    fn flood(&self, words: usize) -> bool {
        for _ in 0..words {
            self.say("x");
            if self.cancelled.try_recv().is_ok() {
                return false;
            }
        }
        true
    }
}

fn text(kind: &str, words: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": words } })
}

fn update(session: &str, what: Value) {
    send(json!({ "method": "session/update", "params": { "sessionId": session, "update": what } }));
}

fn answer(id: &Value, result: Value) {
    send(json!({ "id": id, "result": result }));
}

fn fail(id: &Value, code: i32, message: &str) {
    send(json!({ "id": id, "error": { "code": code, "message": message } }));
}

fn send(mut frame: Value) {
    frame["jsonrpc"] = "2.0".into();
    raw(format!("{frame}\n").as_bytes());
}

/// Writes raw bytes to stdout. A closed stdout means that the gateway has ended, so the actor exits.
fn raw(bytes: &[u8]) {
    static OUT: LazyLock<Mutex<std::io::Stdout>> = LazyLock::new(|| Mutex::new(std::io::stdout()));
    let mut out = OUT.lock().unwrap();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}
