//! Names of the files in `.messages`: `agent--{agent}.jsonl` and `session--{agent}--{session}.jsonl`.
//!
//! Ids are escaped so that every mailbox has its own file: `/` becomes `%2F`, and `-` becomes `%2D` where the name could be
//! split differently. Older programs replaced `/` by `--`; such a name is resolved with the agents that exist.

use parlor_model::{AgentId, Mailbox, SessionId};

const EXTENSION: &str = ".jsonl";

/// Name of the file of a mailbox.
pub fn file_of(mailbox: &Mailbox) -> String {
    let agent = escape(mailbox.agent.as_str());
    match &mailbox.session {
        None => format!("agent--{agent}{EXTENSION}"),
        Some(session) => format!("session--{agent}--{}{EXTENSION}", escape(session.as_str())),
    }
}

/// Replaces `/`, and each `-` at the start, at the end or after another one.
fn escape(id: &str) -> String {
    let mut escaped = String::with_capacity(id.len());
    let last = id.len() - 1;
    let mut after_hyphen = false;
    for (index, c) in id.char_indices() {
        let is_hyphen = c == '-';
        match c {
            '/' => escaped.push_str("%2F"),
            '-' if index == 0 || index == last || after_hyphen => escaped.push_str("%2D"),
            c => escaped.push(c),
        }
        after_hyphen = is_hyphen;
    }
    escaped
}

/// Mailboxes that the name of a file can mean; empty if it is no file of messages. More than one only for names of older
/// programs.
pub fn mailboxes_of(file: &str) -> Vec<Mailbox> {
    let Some(name) = file.strip_suffix(EXTENSION) else { return Vec::new() };
    let (rest, has_session) = match (name.strip_prefix("agent--"), name.strip_prefix("session--")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return Vec::new(),
    };
    let mut found: Vec<Mailbox> = Vec::new();
    for (agents, session) in splits(rest, has_session) {
        let session = match session.map(|id| SessionId::parse(&unescape(id))).transpose() {
            Ok(session) => session,
            Err(_) => continue,
        };
        for agent in agents_of(agents) {
            let mailbox = Mailbox { agent, session: session.clone() };
            if file_of(&mailbox) == file {
                // The name is in the present form, which means one mailbox.
                return vec![mailbox];
            }
            if !found.contains(&mailbox) {
                found.push(mailbox);
            }
        }
    }
    found
}

/// The ways to split a name into an agent and a session.
fn splits(rest: &str, has_session: bool) -> Vec<(&str, Option<&str>)> {
    if !has_session {
        return vec![(rest, None)];
    }
    let separators = rest.match_indices("--").map(|(index, _)| index);
    separators.map(|index| (&rest[..index], Some(&rest[index + 2..]))).collect()
}

/// The agents that a part of a name can mean: `--` may stand for `/`.
fn agents_of(name: &str) -> Vec<AgentId> {
    const MAX_SEPARATORS: usize = 7;
    let parts: Vec<&str> = name.split("--").collect();
    if parts.len() > MAX_SEPARATORS + 1 {
        return Vec::new();
    }
    let ways = 0..1_u32 << (parts.len() - 1);
    let agents = ways.filter_map(|way| {
        let mut id = unescape(parts[0]);
        for (index, part) in parts[1..].iter().enumerate() {
            id.push_str(if way & (1 << index) == 0 { "/" } else { "--" });
            id.push_str(&unescape(part));
        }
        AgentId::parse(&id).ok()
    });
    agents.collect()
}

fn unescape(id: &str) -> String {
    id.replace("%2F", "/").replace("%2D", "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox(agent: &str, session: Option<&str>) -> Mailbox {
        Mailbox { agent: AgentId::stored(agent), session: session.map(SessionId::stored) }
    }

    #[test]
    fn every_mailbox_has_its_own_file() {
        for (agent, session, file) in [
            ("coder", None, "agent--coder.jsonl"),
            ("researcher/analyzer", None, "agent--researcher%2Fanalyzer.jsonl"),
            ("researcher--analyzer", None, "agent--researcher-%2Danalyzer.jsonl"),
            ("slack-bot", Some("main"), "session--slack-bot--main.jsonl"),
            ("a", Some("b--c"), "session--a--b-%2Dc.jsonl"),
            ("a--b", Some("c"), "session--a-%2Db--c.jsonl"),
            ("a-", Some("-b"), "session--a%2D--%2Db.jsonl"),
            ("-", None, "agent--%2D.jsonl"),
        ] {
            assert_eq!(file_of(&mailbox(agent, session)), file);
            assert_eq!(mailboxes_of(file), [mailbox(agent, session)], "{file}");
        }
    }

    #[test]
    fn a_name_of_an_older_program_can_mean_several_mailboxes() {
        let found = mailboxes_of("agent--researcher--analyzer.jsonl");
        let expected = [mailbox("researcher/analyzer", None), mailbox("researcher--analyzer", None)];
        assert_eq!(found, expected);
        let found = mailboxes_of("session--a--b--c.jsonl");
        assert!(found.contains(&mailbox("a/b", Some("c"))) && found.contains(&mailbox("a", Some("b--c"))));
    }

    #[test]
    fn other_files_mean_no_mailbox() {
        for file in ["broker-unmatched.jsonl", "agent--.jsonl", "agent--a", "agent--..%2Fx.jsonl", "x"] {
            assert_eq!(mailboxes_of(file), [], "{file}");
        }
    }
}
