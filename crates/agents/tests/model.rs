//! A model as an agent, against an endpoint on loopback that says what the test wants.

use parlor_agents::finding::Health;
use parlor_agents::kinds::model::{Dialect, Endpoint, EndpointErrorKind, Key, Model, Timeouts};
use parlor_agents::outbound::{self, AddressPolicy};
use parlor_agents::run::{AgentOutput, RunInput, RunIo, RunResult};
use parlor_model::{ChunkKind, RunEvent};
use parlor_testkit::model_endpoint::{ModelEndpoint, ScriptedResponse};
use parlor_wire::agentim::gateway::host::ingress::{Instruction, read};
use serde_json::json;
use std::time::{Duration, Instant};

const CANARY: &str = "sk-canary-0123456789";
const BOTH: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

#[tokio::test]
async fn it_streams_thoughts_and_text_and_tells_what_it_cost() {
    for dialect in BOTH {
        let mut server = ModelEndpoint::start().await.unwrap();
        server.respond_with(ScriptedResponse::Say {
            thoughts: vec!["hm".into()],
            text: vec!["Hello".into(), " wörld".into()],
        });
        let played = play(&model(&server, dialect)).await;
        assert_eq!(played.ending, RunResult::Finished);
        assert_eq!((&*played.thoughts, &*played.text), ("hm", "Hello wörld"));
        assert_eq!(played.pieces, 3, "as it was said");
        assert_eq!(played.spent, Some((25, 7)));

        let asked = server.asked().await.unwrap();
        let body = asked.body;
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
        assert_eq!((&*asked.path, &asked.headers[header], last), (path, &value, &question));
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_cannot_is_not() {
    for dialect in BOTH {
        for status in [429, 500, 502, 503, 529] {
            let mut server = ModelEndpoint::start().await.unwrap();
            server
                .respond_with(ScriptedResponse::status(status, "later"))
                .respond_with(ScriptedResponse::status(status, "later"))
                .respond_with(ScriptedResponse::say("at last"));
            let played = play(&model(&server, dialect)).await;
            assert_eq!((played.ending, &*played.text), (RunResult::Finished, "at last"), "{status}");
            assert_eq!(server.unseen(), 3);
        }
        for (status, words) in [
            (400, "The model's server refused the request (status 400): too odd."),
            (401, "The model's server does not accept the key: too odd."),
            (404, "The model's server does not know this model or this address: too odd."),
        ] {
            let mut server = ModelEndpoint::start().await.unwrap();
            server.respond_with(ScriptedResponse::status(status, "too\n odd"));
            assert_eq!(play(&model(&server, dialect)).await.ending, RunResult::Failed(words.into()));
            assert_eq!(server.unseen(), 1);
        }
    }
}

#[tokio::test]
async fn it_waits_as_long_as_it_is_asked_to_but_not_for_ever() {
    let limited = |seconds: &str| ScriptedResponse::Status {
        status: 429,
        headers: vec![("retry-after".into(), seconds.into())],
        body: "{}".into(),
    };
    let mut server = ModelEndpoint::start().await.unwrap();
    server.respond_with(limited("1")).respond_with(ScriptedResponse::say("thanks"));
    let begun = Instant::now();
    assert_eq!(play(&model(&server, Dialect::OpenAi)).await.text, "thanks");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.unseen(), 2);

    server.respond_with(limited("3600"));
    let words = "The model's server wants fewer requests, or its quota is used up.";
    assert_eq!(play(&model(&server, Dialect::OpenAi)).await.ending, RunResult::Failed(words.into()));
    assert_eq!(server.unseen(), 1, "an hour is too long for a conversation");
}

#[tokio::test]
async fn another_model_takes_over_and_that_is_said() {
    let (mut first, mut second) =
        (ModelEndpoint::start().await.unwrap(), ModelEndpoint::start().await.unwrap());
    for _ in 0..3 {
        first.respond_with(ScriptedResponse::status(529, "busy"));
    }
    second.respond_with(ScriptedResponse::say("I am here"));
    let mut model = model(&first, Dialect::Anthropic);
    model.second = Some(endpoint(&second, Dialect::OpenAi));
    model.second.as_mut().unwrap().model = "large".into();
    let played = play(&model).await;
    assert_eq!((played.ending, &*played.text), (RunResult::Finished, "I am here"));
    let fallback = RunEvent::ModelFallback {
        preferred: "small".into(),
        actual: "large".into(),
        reason: "the model's server is overloaded: busy".into(),
    };
    assert_eq!(played.told, [fallback]);
    let words = "small did not answer: the model's server is overloaded: busy. large answers instead.";
    assert_eq!(played.errors, words, "for those who are not told of events");
    assert_eq!((first.unseen(), second.unseen()), (3, 1));
}

#[tokio::test]
async fn once_something_was_said_nothing_is_asked_again() {
    for dialect in BOTH {
        for (act, words) in [
            (ScriptedResponse::BreakOff("half a".into()), "The model broke off in the middle."),
            // Its silence lasts two minutes, of a clock that goes by itself while nothing happens.
            (ScriptedResponse::Stall("half a".into()), "The model did not answer in time."),
            (ScriptedResponse::SayAndFail("half a".into()), "The model's server is overloaded: Overloaded."),
        ] {
            let mut server = ModelEndpoint::start().await.unwrap();
            let mut model = model(&server, dialect);
            model.second = Some(endpoint(&server, dialect));
            let stalls = matches!(act, ScriptedResponse::Stall(_));
            server.respond_with(act);
            let played = play_and(&model, |_| {
                if stalls {
                    tokio::time::pause();
                }
            })
            .await;
            if stalls {
                tokio::time::resume();
            }
            assert_eq!((played.ending, &*played.text), (RunResult::Failed(words.into()), "half a"));
            assert_eq!(server.unseen(), 1, "a reply has one beginning");
        }
    }
}

#[tokio::test]
async fn silence_garbage_and_floods_end_and_say_so() {
    for dialect in BOTH {
        for (act, words) in [
            (ScriptedResponse::Hang, "The model did not answer in time."),
            (ScriptedResponse::Garbage, "The model's server answered with something that is not an answer."),
            (
                ScriptedResponse::NotAStream,
                "The model's server answered with something that is not an answer.",
            ),
            (ScriptedResponse::EndlessLine, "The model said more than fits."),
            (ScriptedResponse::Say { thoughts: vec![], text: vec![] }, "The model said nothing."),
        ] {
            let server = ModelEndpoint::start().await.unwrap();
            for _ in 0..3 {
                server.respond_with(act.clone());
            }
            let mut model = model(&server, dialect);
            if matches!(act, ScriptedResponse::Hang) {
                model.first.patience.silence = Duration::from_millis(50);
            }
            assert_eq!(play(&model).await.ending, RunResult::Failed(words.into()), "{act:?}");
        }
        let server = ModelEndpoint::start().await.unwrap();
        server.respond_with(ScriptedResponse::Flood);
        let played = play(&model(&server, dialect)).await;
        assert_eq!(played.ending, RunResult::Failed("The model said more than fits.".into()));
        assert!(played.text.len() <= 10 * 1024 * 1024);
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_short_says_so() {
    for dialect in BOTH {
        let server = ModelEndpoint::start().await.unwrap();
        server.respond_with(ScriptedResponse::CutShort("so far".into()));
        let played = play(&model(&server, dialect)).await;
        assert_eq!((played.ending, &*played.text), (RunResult::Finished, "so far"));
        assert_eq!(played.errors, "The model stopped here: it may not say more at once.");
    }
}

#[tokio::test]
async fn a_stop_ends_it_at_once() {
    let server = ModelEndpoint::start().await.unwrap();
    server.respond_with(ScriptedResponse::Stall("a word".into()));
    let mut model = model(&server, Dialect::Anthropic);
    model.first.patience = Timeouts::default();
    let (stage, mut heard, stop) = RunIo::new(8);
    let turn = turn();
    let listening = async {
        while !matches!(heard.recv().await, Some(AgentOutput::Chunk(_))) {}
        stop.cancel();
    };
    let (ending, ()) = tokio::join!(model.execute(&turn, &stage), listening);
    assert_eq!(ending, RunResult::Stopped);
}

#[tokio::test]
async fn the_key_is_shown_nowhere() {
    let server = ModelEndpoint::start().await.unwrap();
    server.respond_with(ScriptedResponse::status(401, &format!("Incorrect key {CANARY} given")));
    let model = model(&server, Dialect::OpenAi);
    let RunResult::Failed(words) = play(&model).await.ending else { panic!("not failed") };
    assert_eq!(&*words, "The model's server does not accept the key: Incorrect key … given.");
    assert!(!format!("{model:?}").contains("canary"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut elsewhere = ModelEndpoint::start().await.unwrap();
    let server = ModelEndpoint::start().await.unwrap();
    let headers = vec![("location".into(), format!("{}/v1/chat/completions", elsewhere.url))];
    server.respond_with(ScriptedResponse::Status { status: 307, headers, body: String::new() });
    let words = "The model's server wants to be asked at another address.";
    assert_eq!(play(&model(&server, Dialect::OpenAi)).await.ending, RunResult::Failed(words.into()));
    assert_eq!(elsewhere.unseen(), 0);
}

#[tokio::test]
async fn what_others_chose_reaches_no_private_network() {
    let mut server = ModelEndpoint::start().await.unwrap();
    let url = server.url.replace("127.0.0.1", "localhost");
    // As a name that led elsewhere when it was looked at.
    let base = outbound::address(&url, AddressPolicy::Everywhere).unwrap();
    let endpoint = Endpoint::new(Dialect::OpenAi, base, Key::new(CANARY), "small", AddressPolicy::Public);
    let endpoint_error = endpoint.ask_briefly("", "hello?", Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(endpoint_error.kind, EndpointErrorKind::AddressBlocked);
    assert_eq!(server.unseen(), 0);
}

#[tokio::test]
async fn a_look_at_it_says_what_is_wrong_and_what_to_do() {
    let server = ModelEndpoint::start().await.unwrap();
    let mut model = model(&server, Dialect::OpenAi);
    let findings = model.examine().await;
    assert_eq!((findings[0].state, &*findings[0].what), (Health::Ok, "small answers at 127.0.0.1."));
    model.first.model = "huge".into();
    let findings = model.examine().await;
    assert_eq!(findings[0].state, Health::Warning);
    assert_eq!(findings[0].fix.as_deref(), Some("Choose one that it has, such as small, large."));
    drop(server);
    let findings = model.examine().await;
    assert_eq!(findings[0].state, Health::Failure);
    assert_eq!(findings[0].fix.as_deref(), Some("Check the address, and that the server is running."));
}

struct Played {
    ending: RunResult,
    text: String,
    thoughts: String,
    errors: String,
    pieces: usize,
    told: Vec<RunEvent>,
    spent: Option<(u64, u64)>,
}

async fn play(model: &Model) -> Played {
    play_and(model, |_| {}).await
}

/// Does something with each piece of text as it is heard.
async fn play_and(model: &Model, mut hear: impl FnMut(&str)) -> Played {
    let (stage, mut heard, _stop) = RunIo::new(4);
    let turn = turn();
    let playing = async {
        let ending = model.execute(&turn, &stage).await;
        drop(stage);
        ending
    };
    let mut played = Played {
        ending: RunResult::Stopped,
        text: String::new(),
        thoughts: String::new(),
        errors: String::new(),
        pieces: 0,
        told: Vec::new(),
        spent: None,
    };
    let listening = async {
        while let Some(said) = heard.recv().await {
            match said {
                AgentOutput::Chunk(chunk) => {
                    played.pieces += 1;
                    match chunk.kind {
                        ChunkKind::Thinking => played.thoughts.push_str(&chunk.content),
                        ChunkKind::Error => played.errors.push_str(&chunk.content),
                        _ => {
                            played.text.push_str(&chunk.content);
                            hear(&chunk.content);
                        }
                    }
                }
                AgentOutput::Event(RunEvent::Usage(report)) => {
                    played.spent = report.spent.map(|spent| (spent.input_tokens, spent.output_tokens));
                }
                AgentOutput::Event(RunEvent::Status { .. }) => {}
                AgentOutput::Event(event) => played.told.push(event),
                other => panic!("{other:?}"),
            }
        }
    };
    let (ending, ()) = tokio::join!(playing, listening);
    played.ending = ending;
    played
}

fn model(server: &ModelEndpoint, dialect: Dialect) -> Model {
    Model { first: endpoint(server, dialect), second: None, instructions: Some("Be brief.".into()) }
}

fn endpoint(server: &ModelEndpoint, dialect: Dialect) -> Endpoint {
    let base = outbound::address(&server.url, AddressPolicy::Everywhere).unwrap();
    let mut endpoint = Endpoint::new(dialect, base, Key::new(CANARY), "small", AddressPolicy::Everywhere);
    // Who has to wait for an answer waits long: a busy machine is slow.
    let (pause, longest_pause) = (Duration::from_millis(10), Duration::from_secs(5));
    endpoint.patience = Timeouts { pause, longest_pause, ..Timeouts::default() };
    endpoint
}

fn turn() -> RunInput {
    let asked = json!({ "type": "server:send_to_agent", "agentId": "coder", "roomId": "r", "messageId": "m",
        "content": "What now?", "senderName": "ada", "senderType": "user" });
    let Ok(Some(Instruction::Answer(request))) = read(&asked.to_string()) else { panic!("{asked}") };
    RunInput { request, room: None, session: None }
}
