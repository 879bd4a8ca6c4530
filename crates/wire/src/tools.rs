//! JSON of the built-in tools of agents: their descriptions, inputs and results. The same for every protocol.

use crate::json::{self, JsonLimits};
use parlor_model::command::Posted;
use parlor_model::query::{SearchCursor, SearchMessages, SearchResults};
use parlor_model::run_event::{Choice, Question};
use parlor_model::{
    Agent, AgentId, Decision, Path, Payload, RoomId, SessionId, ToolDescription, ToolFailure, ToolFailureCode,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// Time that a user has to answer a question, unless the agent chooses a shorter one.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Limits of the JSON that a program prints. Clients parse it recursively.
const OUTPUT_LIMITS: JsonLimits = JsonLimits { depth: 32, items: 100_000 };
const MAX_OPTIONS: usize = 4;
const MAX_QUESTION_CHARS: usize = 2000;
const MAX_OPTION_CHARS: usize = 100;
const DEFAULT_RESULTS: usize = 20;
const MAX_RESULTS: usize = 100;

/// A tool that is part of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltInTool {
    AskUser,
    ListAgents,
    SearchMessages,
    SendMessage,
}

impl BuiltInTool {
    pub const ALL: [Self; 4] = [Self::AskUser, Self::ListAgents, Self::SearchMessages, Self::SendMessage];

    pub fn name(self) -> &'static str {
        match self {
            Self::AskUser => "ask-user",
            Self::ListAgents => "list-agents",
            Self::SearchMessages => "search-messages",
            Self::SendMessage => "send-message",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub fn description(self) -> ToolDescription {
        let (description, schema) = match self {
            Self::AskUser => (
                "Ask the users who may decide for this agent a question and wait for the answer.",
                r#"{"type":"object","required":["question"],"properties":{"question":{"type":"string","maxLength":2000},"options":{"type":"array","maxItems":4,"items":{"type":"string","maxLength":100},"description":"Answers to choose from. Without them, the user writes the answer."},"context":{"type":"string","description":"Shown below the question."},"timeoutMs":{"type":"integer","minimum":1000,"maximum":300000}}}"#,
            ),
            Self::ListAgents => (
                "List the agents that this agent can send messages to.",
                r#"{"type":"object","properties":{}}"#,
            ),
            Self::SearchMessages => (
                "Search messages in the rooms of this agent. The query is: some words \"a phrase\" prefix* -excluded.",
                r#"{"type":"object","required":["query"],"properties":{"query":{"type":"string"},"roomId":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100}}}"#,
            ),
            Self::SendMessage => (
                "Send a message to an agent (\"researcher\", \"researcher/analyzer\"), a room (\"room/ID\") or a path (\"slack/workspace/#channel\").",
                r#"{"type":"object","required":["to"],"properties":{"to":{"type":"string"},"text":{"type":"string","description":"Text of the message; required in a room unless payload has one."},"command":{"type":"string","default":"message"},"payload":{"type":"object"}}}"#,
            ),
        };
        ToolDescription {
            name: self.name().into(),
            description: description.into(),
            schema: Payload(schema.into()),
            timeout: (self == Self::AskUser).then_some(ANSWER_TIMEOUT),
        }
    }
}

fn invalid(rule: impl Into<Box<str>>) -> ToolFailure {
    ToolFailure::new(ToolFailureCode::InvalidInput, rule)
}

fn parse<'a, T: Deserialize<'a>>(input: &'a Payload, form: &str) -> Result<T, ToolFailure> {
    serde_json::from_str(&input.0).map_err(|_| invalid(format!("the input must be {form}")))
}

/// Input of `send-message`.
#[derive(Debug, PartialEq, Eq)]
pub struct SendInput {
    pub to: Box<str>,
    pub command: Box<str>,
    pub payload: Payload,
    /// Readable text of the payload.
    pub text: Option<Box<str>>,
}

impl SendInput {
    pub fn parse(input: &Payload) -> Result<Self, ToolFailure> {
        #[derive(Deserialize)]
        struct Form<'a> {
            to: Box<str>,
            text: Option<Box<str>>,
            command: Option<Box<str>>,
            #[serde(borrow)]
            payload: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Readable {
            text: Option<String>,
        }
        #[derive(Serialize)]
        struct TextPayload<'a> {
            text: &'a str,
        }
        let form = "an object with to (text), and optionally text, command (texts) and payload (object)";
        let Form { to, text, command, payload } = parse(input, form)?;
        let (payload, text) = match (payload.map(RawValue::get), text) {
            (Some(_), Some(_)) => {
                return Err(invalid("text and payload exclude each other: write payload.text"));
            }
            (Some(payload), None) if !payload.starts_with('{') => {
                return Err(invalid("payload must be an object"));
            }
            (Some(payload), None) => {
                let text = serde_json::from_str::<Readable>(payload).ok().and_then(|readable| readable.text);
                (payload.into(), text.map(String::into_boxed_str))
            }
            (None, Some(text)) => (to_json(&TextPayload { text: &text }).0, Some(text)),
            (None, None) => ("{}".into(), None),
        };
        let command = command.unwrap_or_else(|| "message".into());
        Ok(Self { to, command, payload: Payload(payload), text })
    }
}

fn to_json(value: &impl Serialize) -> Payload {
    Payload(serde_json::to_string(value).expect("texts, numbers and lists serialise to JSON").into())
}

/// Result of `send-message`. The sender is shown with the session of the call.
pub fn sent(
    agent: &AgentId,
    session: Option<&SessionId>,
    path: &Path,
    posted: &Posted,
    command: &str,
) -> Payload {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Sent<'a> {
        message_id: &'a str,
        from: String,
        path: &'a str,
        command: &'a str,
        delivered: bool,
        delivered_to: Vec<&'a str>,
        timestamp: Option<i64>,
    }
    let to_agents = posted.deliveries.iter().filter(|delivery| delivery.mailbox.session.is_none());
    let delivered_to: Vec<_> = to_agents.map(|delivery| delivery.mailbox.agent.as_str()).collect();
    let in_room = posted.message.as_ref().is_some_and(|message| message.destination.room().is_some());
    to_json(&Sent {
        message_id: posted.id.as_str(),
        from: session.map_or_else(|| agent.to_string(), |session| format!("agent/{agent}/session/{session}")),
        path: path.as_str(),
        command,
        delivered: in_room || !posted.deliveries.is_empty(),
        delivered_to,
        timestamp: posted.message.as_ref().map(|message| message.at.millis()),
    })
}

/// Input of `ask-user`.
#[derive(Debug, PartialEq, Eq)]
pub struct AskInput {
    pub question: Question,
    pub timeout: Duration,
}

impl AskInput {
    pub fn parse(input: &Payload) -> Result<Self, ToolFailure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Form {
            question: Box<str>,
            options: Option<Vec<Box<str>>>,
            context: Option<Box<str>>,
            timeout_ms: Option<f64>,
        }
        let form = "an object with question (text), and optionally options (list of texts), context (text) and timeoutMs (number)";
        let Form { question, options, context, timeout_ms } = parse(input, form)?;
        let text: Box<str> = match context.as_deref().map(str::trim).filter(|context| !context.is_empty()) {
            Some(context) => format!("{}\n\n{context}", question.trim()).into(),
            None => question.trim().into(),
        };
        if question.trim().is_empty() || text.chars().count() > MAX_QUESTION_CHARS {
            return Err(invalid("question and context must have 1 to 2000 characters"));
        }
        let options = options.unwrap_or_default();
        let is_label = |label: &str| !label.trim().is_empty() && label.chars().count() <= MAX_OPTION_CHARS;
        let mut seen = std::collections::HashSet::new();
        if options.len() > MAX_OPTIONS
            || !options.iter().all(|label| is_label(label) && seen.insert(label.clone()))
        {
            return Err(invalid("options must be at most 4 different texts of 1 to 100 characters"));
        }
        let timeout = match timeout_ms {
            None => ANSWER_TIMEOUT,
            Some(millis) if (1000.0..=ANSWER_TIMEOUT.as_millis() as f64).contains(&millis) => {
                Duration::from_millis(millis as u64)
            }
            Some(_) => return Err(invalid("timeoutMs must be between 1000 and 300000")),
        };
        let choice = |label| Choice { label, description: None, preview: None };
        let options = options.into_iter().map(choice).collect();
        Ok(Self { question: Question { text, header: "Question".into(), options, several: false }, timeout })
    }

    /// The question as JSON, whose digest ties an answer to it.
    pub fn canonical(&self) -> Payload {
        let labels: Vec<&str> = self.question.options.iter().map(|option| &*option.label).collect();
        to_json(&(&*self.question.text, labels))
    }
}

/// Result of `ask-user`: the answer as a text.
pub fn answered(decision: Option<&Decision>) -> Result<Payload, ToolFailure> {
    match decision {
        Some(Decision::Answered { answers, .. }) => {
            let parts = answers.iter().flat_map(|answer| answer.selected.iter().chain(&answer.text));
            let parts: Vec<&str> = parts.map(|part| &**part).collect();
            Ok(to_json(&parts.join(", ")))
        }
        Some(Decision::Expired) | None => {
            Err(ToolFailure::new(ToolFailureCode::Timeout, "no user answered within the time limit"))
        }
        Some(Decision::Withdrawn) => {
            Err(ToolFailure::new(ToolFailureCode::NoRun, "the run ended before a user answered"))
        }
        Some(Decision::Allowed { .. } | Decision::AllowedByRule | Decision::Denied { .. }) => {
            Err(ToolFailure::new(ToolFailureCode::NotAllowed, "the question was refused"))
        }
    }
}

/// Parses the input of `search-messages`.
pub fn search(input: &Payload) -> Result<SearchMessages, ToolFailure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Form {
        query: Box<str>,
        room_id: Option<Box<str>>,
        limit: Option<usize>,
    }
    let form = "an object with query (text), and optionally roomId (text) and limit (number)";
    let Form { query, room_id, limit } = parse(input, form)?;
    let room =
        room_id.map(|room| RoomId::parse(&room).map_err(|_| invalid("roomId must be the id of a room")));
    Ok(SearchMessages {
        text: query,
        room: room.transpose()?,
        sender: None,
        sender_kind: None,
        kind: None,
        from: None,
        to: None,
        from_place: SearchCursor::default(),
        limit: limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS),
    })
}

/// Result of `search-messages`.
pub fn found(results: &SearchResults) -> Payload {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Found<'a> {
        results: Vec<FoundMessage<'a>>,
        /// Whether results may be missing.
        partial: bool,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct FoundMessage<'a> {
        message_id: &'a str,
        room_id: Option<&'a str>,
        sender_id: &'a str,
        sender_name: &'a str,
        timestamp: i64,
        snippet: &'a str,
    }
    let results_json = results.hits.iter().map(|hit| FoundMessage {
        message_id: hit.message.id.as_str(),
        room_id: hit.message.destination.room().map(RoomId::as_str),
        sender_id: hit.message.sender.id(),
        sender_name: &hit.message.sender_name,
        timestamp: hit.message.at.millis(),
        snippet: &hit.snippet,
    });
    to_json(&Found { results: results_json.collect(), partial: results.partial })
}

/// Result of `list-agents`.
pub fn agents(agents: &[Agent]) -> Payload {
    #[derive(Serialize)]
    struct Agents<'a> {
        agents: Vec<ListedAgent<'a>>,
    }
    #[derive(Serialize)]
    struct ListedAgent<'a> {
        id: &'a str,
        name: &'a str,
        description: &'a str,
    }
    let listed = agents.iter().map(|agent| ListedAgent {
        id: agent.id.as_str(),
        name: &agent.name,
        description: &agent.description,
    });
    to_json(&Agents { agents: listed.collect() })
}

/// Whether a text is exactly one JSON value within the limits of [`OUTPUT_LIMITS`]. Returns it without surrounding white
/// space.
pub fn output(text: &str) -> Option<Payload> {
    json::check(text, OUTPUT_LIMITS).ok()?;
    let value: &RawValue = serde_json::from_str(text).ok()?;
    Some(Payload(value.get().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{Decider, UserId, run_event::QuestionAnswer};

    fn payload(text: &str) -> Payload {
        Payload(text.into())
    }

    #[track_caller]
    fn check_send(input: &str, expected: Result<(&str, &str, Option<&str>), &str>) {
        let parsed = SendInput::parse(&payload(input));
        match (&parsed, expected) {
            (Ok(sent), Ok((command, json, text))) => {
                assert_eq!(
                    (&*sent.command, &*sent.payload.0, sent.text.as_deref()),
                    (command, json, text),
                    "{input}"
                );
            }
            (Err(failure), Err(rule)) => assert!(failure.message.contains(rule), "{input}: {failure:?}"),
            _ => panic!("{input}: {parsed:?}"),
        }
    }

    #[test]
    fn a_message_has_a_text_or_a_payload() {
        check_send(r#"{"to":"a"}"#, Ok(("message", "{}", None)));
        check_send(
            r#"{"to":"a","command":"go","text":"h\"i"}"#,
            Ok(("go", r#"{"text":"h\"i"}"#, Some("h\"i"))),
        );
        check_send(r#"{"to":"a","payload":{"x": 1.0}}"#, Ok(("message", r#"{"x": 1.0}"#, None)));
        check_send(r#"{"to":"a","payload":{"text":"hi"}}"#, Ok(("message", r#"{"text":"hi"}"#, Some("hi"))));
        check_send(r#"{"to":"a","payload":{"text":7}}"#, Ok(("message", r#"{"text":7}"#, None)));
        check_send(r#"{"to":"a","payload":[]}"#, Err("payload must be an object"));
        check_send(r#"{"to":"a","payload":{},"text":"x"}"#, Err("exclude each other"));
        check_send(r#"{"text":"x"}"#, Err("an object with to"));
        check_send("[]", Err("an object with to"));
    }

    #[track_caller]
    fn check_ask(input: &str, expected: Result<(&str, usize, u64), &str>) {
        let parsed = AskInput::parse(&payload(input));
        match (&parsed, expected) {
            (Ok(ask), Ok((text, options, millis))) => {
                assert_eq!((&*ask.question.text, ask.question.options.len()), (text, options), "{input}");
                assert_eq!(ask.timeout, Duration::from_millis(millis));
            }
            (Err(failure), Err(rule)) => assert!(failure.message.contains(rule), "{input}: {failure:?}"),
            _ => panic!("{input}: {parsed:?}"),
        }
    }

    #[test]
    fn a_question_has_at_most_four_options_and_five_minutes() {
        check_ask(r#"{"question":"Deploy?"}"#, Ok(("Deploy?", 0, 300_000)));
        check_ask(
            r#"{"question":"Deploy?","options":["yes","no"],"timeoutMs":1000}"#,
            Ok(("Deploy?", 2, 1000)),
        );
        check_ask(
            r#"{"question":"Deploy?","context":"to prod","options":null}"#,
            Ok(("Deploy?\n\nto prod", 0, 300_000)),
        );
        check_ask(r#"{"question":" "}"#, Err("1 to 2000"));
        check_ask(r#"{"question":"?","options":["1","2","3","4","5"]}"#, Err("at most 4"));
        check_ask(r#"{"question":"?","options":["1","1"]}"#, Err("different"));
        check_ask(r#"{"question":"?","options":[""]}"#, Err("at most 4"));
        check_ask(r#"{"question":"?","timeoutMs":300001}"#, Err("timeoutMs"));
        check_ask(r#"{"question":7}"#, Err("an object with question"));
    }

    #[test]
    fn an_answer_is_a_text_and_everything_else_a_failure() {
        let answer = |selected: &[&str], text: Option<&str>| Decision::Answered {
            by: Decider { user: UserId::stored("ann"), name: "Ann".into() },
            answers: vec![QuestionAnswer {
                question: 0,
                selected: selected.iter().map(|label| (*label).into()).collect(),
                text: text.map(Into::into),
            }],
        };
        assert_eq!(answered(Some(&answer(&["yes"], None))), Ok(payload("\"yes\"")));
        assert_eq!(answered(Some(&answer(&[], Some("later \"on\"")))), Ok(payload(r#""later \"on\"""#)));
        let code = |decision: Option<Decision>| answered(decision.as_ref()).unwrap_err().code;
        assert_eq!(code(Some(Decision::Expired)), ToolFailureCode::Timeout);
        assert_eq!(code(Some(Decision::Withdrawn)), ToolFailureCode::NoRun);
        assert_eq!(code(None), ToolFailureCode::Timeout);
    }

    #[test]
    fn the_output_of_a_program_is_exactly_one_json_value() {
        assert_eq!(output(" {\"a\": 1.0}\n"), Some(payload("{\"a\": 1.0}")));
        assert_eq!(output("null"), Some(payload("null")));
        for text in ["", " ", "{} {}", "hello", "{\"a\":}", "{}x"] {
            assert_eq!(output(text), None, "{text}");
        }
    }

    #[test]
    fn every_built_in_tool_has_a_schema_that_is_an_object() {
        for tool in BuiltInTool::ALL {
            assert_eq!(BuiltInTool::parse(tool.name()), Some(tool));
            let schema: serde_json::Value = serde_json::from_str(&tool.description().schema.0).unwrap();
            assert_eq!(schema["type"], "object", "{tool:?}");
        }
        assert_eq!(BuiltInTool::parse("ghost"), None);
    }

    #[test]
    fn a_search_has_a_limit() {
        for (given, expected) in
            [("", 20), (",\"limit\":0", 1), (",\"limit\":7", 7), (",\"limit\":1000", 100)]
        {
            let input = format!("{{\"query\":\"word\"{given}}}");
            assert_eq!(search(&payload(&input)).unwrap().limit, expected);
        }
        assert!(search(&payload(r#"{"query":"x","roomId":"../x"}"#)).is_err());
        assert!(search(&payload("{}")).is_err());
    }
}
