//! Parses a message to the guide into a request for demos.

use super::NAME;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuideRequest {
    /// A greeting or an empty message; the guide introduces itself.
    Greeting,
    /// A text that only an agent with a model could answer.
    Talk,
    Everything,
    Demos(Vec<Demo>),
}

/// One feature that the guide can demonstrate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Demo {
    Think,
    Tool,
    Permission,
    Task,
    Question,
    Plan,
    Subagent,
    Usage,
    Changes,
    Fallback,
    Error,
    Terminal,
    Long,
    Slow,
    /// Passes the conversation on to another agent; `None` if the message names none.
    Chain(Option<Box<str>>),
}

/// Maximum number of words of a request. In a longer text the keywords are probably not meant as a request.
const MAX_WORDS: usize = 8;
/// Words that count as a greeting.
const GREETINGS: &[&str] = &["hi", "hello", "hey", "hallo", "help", "start", "thanks", "welcome"];
/// Maximum characters of the agent name after `chain`.
const MAX_NAME_CHARS: usize = 60;

pub fn parse(text: &str) -> GuideRequest {
    let words: Vec<&str> = text.split_whitespace().filter(|word| !word.starts_with('@')).collect();
    let normalized = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        Some(word).filter(|word| !word.is_empty())
    };
    let words: Vec<String> = words.iter().filter_map(normalized).collect();
    if words.is_empty() {
        return GuideRequest::Greeting;
    }
    if words.len() > MAX_WORDS {
        return GuideRequest::Talk;
    }
    if words.iter().any(|word| matches!(&**word, "everything" | "all")) {
        return GuideRequest::Everything;
    }
    let mut demos: Vec<Demo> = Vec::new();
    for word in &words {
        if word == "chain" {
            // Everything after `chain` is an agent's name, even if it contains keywords.
            demos.push(Demo::Chain(chain_target(text)));
            break;
        }
        demos.extend(demo(word).filter(|demo| !demos.contains(demo)));
    }
    match demos.is_empty() {
        false => GuideRequest::Demos(demos),
        true if words.iter().any(|word| GREETINGS.contains(&&**word)) => GuideRequest::Greeting,
        true => GuideRequest::Talk,
    }
}

fn demo(word: &str) -> Option<Demo> {
    Some(match word {
        "think" | "thinking" | "thoughts" => Demo::Think,
        "tool" | "tools" => Demo::Tool,
        "permission" | "permissions" | "approval" | "approve" => Demo::Permission,
        "task" | "tasks" => Demo::Task,
        "question" | "questions" => Demo::Question,
        "plan" | "plans" => Demo::Plan,
        "subagent" | "subagents" => Demo::Subagent,
        "usage" | "tokens" | "cost" => Demo::Usage,
        "change" | "changes" | "diff" => Demo::Changes,
        "fallback" => Demo::Fallback,
        "error" | "errors" => Demo::Error,
        "terminal" => Demo::Terminal,
        "long" => Demo::Long,
        "slow" | "slowly" => Demo::Slow,
        _ => return None,
    })
}

/// The name after `chain`: the rest of the line, because a name may have several words.
fn chain_target(text: &str) -> Option<Box<str>> {
    let at = text.to_ascii_lowercase().find("chain")?;
    let rest = text[at + "chain".len()..].lines().next()?;
    let name = rest.trim_matches(|c: char| !c.is_alphanumeric());
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    let usable = !name.is_empty() && !name.eq_ignore_ascii_case(NAME);
    usable.then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: GuideRequest) {
        assert_eq!(parse(text), expected, "{text:?}");
    }

    fn chain(name: &str) -> GuideRequest {
        GuideRequest::Demos(vec![Demo::Chain(Some(name.into()))])
    }

    #[test]
    fn a_keyword_is_found_anywhere_in_the_message() {
        check("@guide plan", GuideRequest::Demos(vec![Demo::Plan]));
        check("@Guide, show me a PLAN please!", GuideRequest::Demos(vec![Demo::Plan]));
        check("think and tool, then think", GuideRequest::Demos(vec![Demo::Think, Demo::Tool]));
        check("@guide show me everything", GuideRequest::Everything);
        check("@guide plan, no: everything!", GuideRequest::Everything);
    }

    #[test]
    fn a_greeting_is_answered_with_a_greeting() {
        for text in ["", "@guide", "@guide ?", "@guide hi!", "Hello @guide", "@guide help me"] {
            check(text, GuideRequest::Greeting);
        }
    }

    #[test]
    fn a_text_that_needs_a_model_is_not_a_request() {
        check("@guide what is the capital of France?", GuideRequest::Talk);
        check("@guide we have a plan for the release and I wonder whether it is good", GuideRequest::Talk);
    }

    #[test]
    fn a_chain_goes_to_the_named_agent() {
        check("@guide chain @coder", chain("coder"));
        check("@guide chain coder.", chain("coder"));
        check("@guide Chain @Plan Writer", chain("Plan Writer"));
        check("@guide chain", GuideRequest::Demos(vec![Demo::Chain(None)]));
        check("@guide chain @guide", GuideRequest::Demos(vec![Demo::Chain(None)]));
    }
}
