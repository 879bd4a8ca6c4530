//! Tests the agent kind `model` against a scripted endpoint on loopback.

use parlor_agents::finding::Health;
use parlor_agents::kinds::model::{Dialect, Endpoint, EndpointErrorKind, Key, Model, Timeouts};
use parlor_agents::run::{AgentOutput, RunInput, RunIo, RunResult};
use parlor_model::{ChunkKind, RunEvent};
use parlor_outbound::{self as outbound, AddressPolicy};
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_wire::agentim::gateway::host::ingress::{Instruction, read};
use serde_json::json;
use std::time::{Duration, Instant};

const CANARY: &str = "sk-canary-0123456789";
const BOTH: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

#[tokio::test]
async fn it_streams_thoughts_and_text_and_reports_its_usage() {
    for dialect in BOTH {
        let mut server = ModelEndpoint::start().await.unwrap();
        server.respond_with(ScriptedResponse::Say {
            thoughts: vec!["hm".into()],
            text: vec!["Hello".into(), " wörld".into()],
        });
        let finished_run = play(&model(&server, dialect)).await;
        assert_eq!(finished_run.result, RunResult::Finished);
        assert_eq!((&*finished_run.thoughts, &*finished_run.text), ("hm", "Hello wörld"));
        assert_eq!(finished_run.chunks, 3, "every delta is sent as its own chunk");
        assert_eq!(finished_run.spent, Some((25, 7)));

        let request = server.asked().await.unwrap();
        let body = request.body;
        assert_eq!((&body["model"], &body["stream"]), (&json!("small"), &json!(true)));
        let question = json!({ "role": "user", "content": "ada (person): What now?" });
        let (path, header, value, last) = match dialect {
            Dialect::OpenAi => {
                assert_eq!(body["messages"][0]["role"], "system");
                assert!(body["messages"][0]["content"].as_str().unwrap().starts_with("Be brief.\n\n"));
                ("/v1/chat/completions", "authorization", format!("Bearer {CANARY}"), &body["messages"][1])
            }
            Dialect::Anthropic => {
                assert!(body["system"].as_str().unwrap().starts_with("Be brief.\n\n"));
                assert!(body["max_tokens"].is_u64());
                ("/v1/messages", "x-api-key", CANARY.to_owned(), &body["messages"][0])
            }
        };
        assert_eq!((&*request.path, &request.headers[header], last), (path, &value, &question));
    }
}

#[tokio::test]
async fn a_transient_error_is_retried_and_a_permanent_one_is_not() {
    for dialect in BOTH {
        for status in [429, 500, 502, 503, 529] {
            let mut server = ModelEndpoint::start().await.unwrap();
            server
                .respond_with(ScriptedResponse::status(status, "later"))
                .respond_with(ScriptedResponse::status(status, "later"))
                .respond_with(ScriptedResponse::say("at last"));
            let finished_run = play(&model(&server, dialect)).await;
            assert_eq!(
                (finished_run.result, &*finished_run.text),
                (RunResult::Finished, "at last"),
                "{status}"
            );
            assert_eq!(server.unseen(), 3);
        }
        for (status, expected) in [
            (400, "The model's server rejected the request (status 400): too odd."),
            (401, "The model's server does not accept the key: too odd."),
            (404, "The model's server does not know this model or this address: too odd."),
        ] {
            let mut server = ModelEndpoint::start().await.unwrap();
            server.respond_with(ScriptedResponse::status(status, "too\n odd"));
            assert_eq!(play(&model(&server, dialect)).await.result, RunResult::Failed(expected.into()));
            assert_eq!(server.unseen(), 1);
        }
    }
}

#[tokio::test]
async fn retry_after_is_honoured_up_to_a_maximum() {
    let limited = |seconds: &str| ScriptedResponse::Status {
        status: 429,
        headers: vec![("retry-after".into(), seconds.into())],
        body: "{}".into(),
    };
    let mut server = ModelEndpoint::start().await.unwrap();
    server.respond_with(limited("1")).respond_with(ScriptedResponse::say("thanks"));
    let started = Instant::now();
    assert_eq!(play(&model(&server, Dialect::OpenAi)).await.text, "thanks");
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.unseen(), 2);

    server.respond_with(limited("3600"));
    let expected = "The model's server limits the request rate, or its quota is used up.";
    assert_eq!(play(&model(&server, Dialect::OpenAi)).await.result, RunResult::Failed(expected.into()));
    assert_eq!(server.unseen(), 1, "a Retry-After of an hour is not waited for");
}

#[tokio::test]
async fn a_fallback_to_another_model_is_reported() {
    let (mut first, mut second) =
        (ModelEndpoint::start().await.unwrap(), ModelEndpoint::start().await.unwrap());
    for _ in 0..3 {
        first.respond_with(ScriptedResponse::status(529, "busy"));
    }
    second.respond_with(ScriptedResponse::say("I am here"));
    let mut model = model(&first, Dialect::Anthropic);
    model.second = Some(endpoint(&second, Dialect::OpenAi));
    model.second.as_mut().unwrap().model = "large".into();
    let finished_run = play(&model).await;
    assert_eq!((finished_run.result, &*finished_run.text), (RunResult::Finished, "I am here"));
    let fallback = RunEvent::ModelFallback {
        preferred: "small".into(),
        actual: "large".into(),
        reason: "the model's server is overloaded: busy".into(),
    };
    assert_eq!(finished_run.events, [fallback]);
    let expected = "small did not answer: the model's server is overloaded: busy. large answers instead.";
    assert_eq!(finished_run.errors, expected, "the text for clients that receive no run events");
    assert_eq!((first.unseen(), second.unseen()), (3, 1));
}

#[tokio::test]
async fn an_error_after_the_first_output_is_not_retried() {
    for dialect in BOTH {
        for (response, expected) in [
            (
                ScriptedResponse::BreakOff("half a".into()),
                "The connection was lost in the middle of the model's answer.",
            ),
            // The idle timeout is two minutes; the paused clock of tokio skips them.
            (ScriptedResponse::Stall("half a".into()), "The model did not answer in time."),
            (ScriptedResponse::SayAndFail("half a".into()), "The model's server is overloaded: Overloaded."),
        ] {
            let mut server = ModelEndpoint::start().await.unwrap();
            let mut model = model(&server, dialect);
            model.second = Some(endpoint(&server, dialect));
            let stalls = matches!(response, ScriptedResponse::Stall(_));
            server.respond_with(response);
            let finished_run = play_and(&model, |_| {
                if stalls {
                    tokio::time::pause();
                }
            })
            .await;
            if stalls {
                tokio::time::resume();
            }
            assert_eq!(
                (finished_run.result, &*finished_run.text),
                (RunResult::Failed(expected.into()), "half a")
            );
            assert_eq!(server.unseen(), 1, "there is no second request");
        }
    }
}

#[tokio::test]
async fn silence_garbage_and_floods_end_the_run_with_an_error() {
    for dialect in BOTH {
        for (response, expected) in [
            (ScriptedResponse::Hang, "The model did not answer in time."),
            (ScriptedResponse::Garbage, "The model's server sent an invalid response."),
            (ScriptedResponse::NotAStream, "The model's server sent an invalid response."),
            (ScriptedResponse::EndlessLine, "The model's answer is too large."),
            (ScriptedResponse::Say { thoughts: vec![], text: vec![] }, "The model sent an empty answer."),
        ] {
            let server = ModelEndpoint::start().await.unwrap();
            for _ in 0..3 {
                server.respond_with(response.clone());
            }
            let mut model = model(&server, dialect);
            if matches!(response, ScriptedResponse::Hang) {
                model.first.timeouts.idle = Duration::from_millis(50);
            }
            assert_eq!(play(&model).await.result, RunResult::Failed(expected.into()), "{response:?}");
        }
        let server = ModelEndpoint::start().await.unwrap();
        server.respond_with(ScriptedResponse::Flood);
        let finished_run = play(&model(&server, dialect)).await;
        assert_eq!(finished_run.result, RunResult::Failed("The model's answer is too large.".into()));
        assert!(finished_run.text.len() <= 10 * 1024 * 1024);
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_says_so() {
    for dialect in BOTH {
        let server = ModelEndpoint::start().await.unwrap();
        server.respond_with(ScriptedResponse::CutShort("so far".into()));
        let finished_run = play(&model(&server, dialect)).await;
        assert_eq!((finished_run.result, &*finished_run.text), (RunResult::Finished, "so far"));
        assert_eq!(finished_run.errors, "The answer is cut off here: it reached the maximum length.");
    }
}

#[tokio::test]
async fn a_stop_ends_the_run_at_once() {
    let server = ModelEndpoint::start().await.unwrap();
    server.respond_with(ScriptedResponse::Stall("a word".into()));
    let mut model = model(&server, Dialect::Anthropic);
    model.first.timeouts = Timeouts::default();
    let (run_io, mut output, stop) = RunIo::new(8);
    let run_input = run_input();
    let stop_at_first_chunk = async {
        while !matches!(output.recv().await, Some(AgentOutput::Chunk(_))) {}
        stop.cancel();
    };
    let (result, ()) = tokio::join!(model.execute(&run_input, &run_io), stop_at_first_chunk);
    assert_eq!(result, RunResult::Stopped);
}

#[tokio::test]
async fn the_key_appears_in_no_error_and_no_debug_output() {
    let server = ModelEndpoint::start().await.unwrap();
    server.respond_with(ScriptedResponse::status(401, &format!("Incorrect key {CANARY} given")));
    let model = model(&server, Dialect::OpenAi);
    let RunResult::Failed(message) = play(&model).await.result else { panic!("not failed") };
    assert_eq!(&*message, "The model's server does not accept the key: Incorrect key … given.");
    assert!(!format!("{model:?}").contains("canary"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut target = ModelEndpoint::start().await.unwrap();
    let server = ModelEndpoint::start().await.unwrap();
    let headers = vec![("location".into(), format!("{}/v1/chat/completions", target.url))];
    server.respond_with(ScriptedResponse::Status { status: 307, headers, body: String::new() });
    let expected = "The model's server sent a redirect, which is not followed.";
    assert_eq!(play(&model(&server, Dialect::OpenAi)).await.result, RunResult::Failed(expected.into()));
    assert_eq!(target.unseen(), 0);
}

#[tokio::test]
async fn an_address_of_a_user_reaches_no_private_network() {
    let mut server = ModelEndpoint::start().await.unwrap();
    let url = server.url.replace("127.0.0.1", "localhost");
    // Stands for a name that resolved to a public address when the URL was checked.
    let base = outbound::address(&url, AddressPolicy::Everywhere).unwrap();
    let endpoint = Endpoint::new(Dialect::OpenAi, base, Key::new(CANARY), "small", AddressPolicy::Public);
    let endpoint_error = endpoint.ask_briefly("", "hello?", Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(endpoint_error.kind, EndpointErrorKind::AddressBlocked);
    assert_eq!(server.unseen(), 0);
}

#[tokio::test]
async fn an_examination_reports_a_problem_and_its_fix() {
    let server = ModelEndpoint::start().await.unwrap();
    let mut model = model(&server, Dialect::OpenAi);
    let findings = model.examine().await;
    assert_eq!(
        (findings[0].state, &*findings[0].what),
        (Health::Ok, "127.0.0.1 is reachable and has the model small.")
    );
    model.first.model = "huge".into();
    let findings = model.examine().await;
    assert_eq!(findings[0].state, Health::Warning);
    assert_eq!(findings[0].fix.as_deref(), Some("Choose a model that it has, such as small, large."));
    drop(server);
    let findings = model.examine().await;
    assert_eq!(findings[0].state, Health::Failure);
    assert_eq!(findings[0].fix.as_deref(), Some("Check the address, and that the server is running."));
}

/// The result and the collected output of one run.
struct FinishedRun {
    result: RunResult,
    text: String,
    thoughts: String,
    errors: String,
    chunks: usize,
    events: Vec<RunEvent>,
    spent: Option<(u64, u64)>,
}

async fn play(model: &Model) -> FinishedRun {
    play_and(model, |_| {}).await
}

/// Executes one run and calls `on_text` with each text chunk as it arrives.
async fn play_and(model: &Model, mut on_text: impl FnMut(&str)) -> FinishedRun {
    let (run_io, mut output, _stop) = RunIo::new(4);
    let run_input = run_input();
    let executing = async {
        let result = model.execute(&run_input, &run_io).await;
        drop(run_io);
        result
    };
    let mut finished_run = FinishedRun {
        result: RunResult::Stopped,
        text: String::new(),
        thoughts: String::new(),
        errors: String::new(),
        chunks: 0,
        events: Vec::new(),
        spent: None,
    };
    let collecting = async {
        while let Some(item) = output.recv().await {
            match item {
                AgentOutput::Chunk(chunk) => {
                    finished_run.chunks += 1;
                    match chunk.kind {
                        ChunkKind::Thinking => finished_run.thoughts.push_str(&chunk.content),
                        ChunkKind::Error => finished_run.errors.push_str(&chunk.content),
                        _ => {
                            finished_run.text.push_str(&chunk.content);
                            on_text(&chunk.content);
                        }
                    }
                }
                AgentOutput::Event(RunEvent::Usage(report)) => {
                    finished_run.spent = report.spent.map(|spent| (spent.input_tokens, spent.output_tokens));
                }
                AgentOutput::Event(RunEvent::Status { .. }) => {}
                AgentOutput::Event(event) => finished_run.events.push(event),
                other => panic!("{other:?}"),
            }
        }
    };
    let (result, ()) = tokio::join!(executing, collecting);
    finished_run.result = result;
    finished_run
}

fn model(server: &ModelEndpoint, dialect: Dialect) -> Model {
    Model { first: endpoint(server, dialect), second: None, instructions: Some("Be brief.".into()) }
}

fn endpoint(server: &ModelEndpoint, dialect: Dialect) -> Endpoint {
    let base = outbound::address(&server.url, AddressPolicy::Everywhere).unwrap();
    let mut endpoint = Endpoint::new(dialect, base, Key::new(CANARY), "small", AddressPolicy::Everywhere);
    // Only the retry delays are shortened: with short timeouts, tests would fail on a busy machine.
    let (retry_delay, max_retry_delay) = (Duration::from_millis(10), Duration::from_secs(5));
    endpoint.timeouts = Timeouts { retry_delay, max_retry_delay, ..Timeouts::default() };
    endpoint
}

fn run_input() -> RunInput {
    let request = json!({ "type": "server:send_to_agent", "agentId": "coder", "roomId": "r", "messageId": "m",
        "content": "What now?", "senderName": "ada", "senderType": "user" });
    let Ok(Some(Instruction::Answer(request))) = read(&request.to_string()) else { panic!("{request}") };
    RunInput { request, room: None, session: None }
}
