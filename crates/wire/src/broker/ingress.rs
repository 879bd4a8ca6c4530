//! From broker frames to what they ask for. Never panics, whatever comes.

use crate::json::{self, Bounds};
use parlor_model::{AgentId, Command, Path, Pattern, Payload, Route};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug)]
pub struct Request {
    /// The frame's own type, as far as it was understood.
    pub kind: Box<str>,
    /// Echoed on the reply; JSON text, absent when it says nothing.
    pub req_id: Option<Box<str>>,
    pub asked: Result<Asked, Box<str>>,
}

#[derive(Debug)]
pub enum Asked {
    Auth { token: Box<str> },
    Ping,
    Command(Command),
    Listen { agent: AgentId },
    Unknown,
}

/// The most messages one `msg.receive` brings.
pub const RECEIVE: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson;

pub fn read(text: &str, bounds: Bounds) -> Result<Request, NotJson> {
    json::check(text, bounds).map_err(|_| NotJson)?;
    let head: Head = serde_json::from_str(text).map_err(|_| NotJson)?;
    let kind: Box<str> = head.kind.as_deref().unwrap_or("").into();
    let req_id = head.req_id.map(RawValue::get).filter(|raw| !is_falsy(raw)).map(Into::into);
    let asked = understand(&kind, text);
    Ok(Request { kind, req_id, asked })
}

/// As the original has it: `0`, `""`, `false` and `null` are not echoed.
fn is_falsy(raw: &str) -> bool {
    matches!(raw, "0" | "\"\"" | "false" | "null")
}

fn understand(kind: &str, text: &str) -> Result<Asked, Box<str>> {
    Ok(match kind {
        "auth" => {
            let Auth { token } = parse(text)?;
            Asked::Auth { token }
        }
        "ping" => Asked::Ping,
        "agent.create" => Asked::Command(create(parse(text)?)?),
        "msg.route" => Asked::Command(route(parse(text)?)?),
        "msg.listen" => {
            let OfAgent { agent_id } = parse(text)?;
            Asked::Listen { agent: agent(&agent_id)? }
        }
        "msg.receive" => {
            let OfAgent { agent_id } = parse(text)?;
            Asked::Command(Command::Receive { agent: agent(&agent_id)?, limit: RECEIVE })
        }
        _ => Asked::Unknown,
    })
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Box<str>> {
    serde_json::from_str(text).map_err(|error| {
        let json::Misfit { field, rule } = json::misfit(&error);
        match field {
            Some(field) => format!("{field} is required").into(),
            None => format!("a field {rule}").into(),
        }
    })
}

fn agent(id: &str) -> Result<AgentId, Box<str>> {
    AgentId::parse(id).map_err(|_| format!("Invalid agent ID: {id:.200}").into())
}

fn create(frame: Create) -> Result<Command, Box<str>> {
    let id = agent(&frame.id)?;
    let config = frame.config.unwrap_or_default();
    let patterns = config.subscriptions.unwrap_or_default();
    let subscriptions = patterns.iter().map(|pattern| {
        let text = match pattern {
            Subscribed::Plain(text) | Subscribed::Dated { pattern: text } => text,
        };
        Pattern::parse(text).map_err(|flaw| flaw.to_string().into())
    });
    let subscriptions = subscriptions.collect::<Result<_, Box<str>>>()?;
    let last = id.as_str().rsplit('/').next().unwrap_or_default().into();
    Ok(Command::CreateAgent {
        name: config.name.unwrap_or(last),
        description: config.description.unwrap_or_default(),
        subscriptions,
        id,
    })
}

fn route(frame: RouteFrame) -> Result<Command, Box<str>> {
    let path = Path::parse(&frame.path).map_err(|flaw| Box::<str>::from(flaw.to_string()))?;
    let payload = frame.payload.map_or("{}", RawValue::get);
    if !payload.starts_with('{') {
        return Err("payload must be an object".into());
    }
    let text = serde_json::from_str::<Readable>(payload).ok().and_then(|readable| readable.text);
    Ok(Command::Route(Route {
        from: frame.from,
        path,
        command: frame.command.unwrap_or_else(|| "message".into()),
        payload: Payload(payload.into()),
        text: text.map(Into::into),
        source: frame.source.unwrap_or_else(|| "external".into()),
        external_id: frame.external_id,
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    req_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Auth {
    token: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfAgent {
    agent_id: Box<str>,
}

#[derive(Deserialize)]
struct Create {
    id: Box<str>,
    config: Option<Config>,
}

#[derive(Deserialize, Default)]
struct Config {
    name: Option<Box<str>>,
    description: Option<Box<str>>,
    subscriptions: Option<Vec<Subscribed>>,
}

/// Patterns as people write them, or as the original stores them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Subscribed {
    Plain(Box<str>),
    Dated { pattern: Box<str> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RouteFrame<'a> {
    from: Box<str>,
    path: Box<str>,
    command: Option<Box<str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    source: Option<Box<str>>,
    external_id: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Readable {
    text: Option<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds { depth: 32, items: 1000 };

    #[test]
    fn a_request_says_what_is_wrong_with_it_and_keeps_its_req_id() {
        let request = read(r#"{"type":"msg.route","from":"a","reqId":"r1"}"#, BOUNDS).unwrap();
        assert_eq!(request.req_id.as_deref(), Some("\"r1\""));
        assert_eq!(&*request.asked.unwrap_err(), "path is required");
        assert!(read("{not json", BOUNDS).is_err());
    }

    #[test]
    fn an_id_that_climbs_is_refused() {
        for id in ["../x", "a/../b", "a:b", "a--b/", ""] {
            let text = format!(r#"{{"type":"msg.receive","agentId":"{id}"}}"#);
            let request = read(&text, BOUNDS).unwrap();
            assert!(request.asked.unwrap_err().starts_with("Invalid agent ID"), "{id}");
        }
    }

    proptest! {
        #[test]
        fn no_text_whatever_makes_it_panic(text in "\\PC{0,200}|\\{\"type\":\"(msg|agent).[a-z]{0,8}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text, BOUNDS);
        }
    }
}
