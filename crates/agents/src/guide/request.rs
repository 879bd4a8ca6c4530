//! What somebody wants to see, from the words they wrote.

use super::NAME;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuideRequest {
    /// Nothing that the guide could show: it says who it is.
    Greeting,
    /// A text that needs a model to be answered.
    Talk,
    Everything,
    Acts(Vec<Demo>),
}

/// One thing that the guide can show.
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
    /// Hands over to another agent, if one was named.
    Chain(Option<Box<str>>),
}

/// A request is short; in a longer text the same words mean something else.
const MOST_WORDS: usize = 8;
const GREETINGS: &[&str] = &["hi", "hello", "hey", "hallo", "help", "start", "thanks", "welcome"];
/// As long as a name may be, and not a story.
const LONGEST_NAME: usize = 60;

pub fn wish(text: &str) -> GuideRequest {
    let words: Vec<&str> = text.split_whitespace().filter(|word| !word.starts_with('@')).collect();
    let plain = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        Some(word).filter(|word| !word.is_empty())
    };
    let known: Vec<String> = words.iter().filter_map(plain).collect();
    if known.is_empty() {
        return GuideRequest::Greeting;
    }
    if known.len() > MOST_WORDS {
        return GuideRequest::Talk;
    }
    if known.iter().any(|word| matches!(&**word, "everything" | "all")) {
        return GuideRequest::Everything;
    }
    let mut acts: Vec<Demo> = Vec::new();
    for word in &known {
        if word == "chain" {
            // Whatever follows is a name, even if it sounds like a request.
            acts.push(Demo::Chain(named(text)));
            break;
        }
        acts.extend(act(word).filter(|act| !acts.contains(act)));
    }
    match acts.is_empty() {
        false => GuideRequest::Acts(acts),
        true if known.iter().any(|word| GREETINGS.contains(&&**word)) => GuideRequest::Greeting,
        true => GuideRequest::Talk,
    }
}

fn act(word: &str) -> Option<Demo> {
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

/// Whom to hand over to: the rest of the line, since a name may have several words.
fn named(text: &str) -> Option<Box<str>> {
    let at = text.to_ascii_lowercase().find("chain")?;
    let rest = text[at + "chain".len()..].lines().next()?;
    let name = rest.trim_matches(|c: char| !c.is_alphanumeric());
    let name: String = name.chars().take(LONGEST_NAME).collect();
    let usable = !name.is_empty() && !name.eq_ignore_ascii_case(NAME);
    usable.then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: GuideRequest) {
        assert_eq!(wish(text), expected, "{text:?}");
    }

    fn chain(name: &str) -> GuideRequest {
        GuideRequest::Acts(vec![Demo::Chain(Some(name.into()))])
    }

    #[test]
    fn one_word_is_enough_wherever_it_stands() {
        check("@guide plan", GuideRequest::Acts(vec![Demo::Plan]));
        check("@Guide, show me a PLAN please!", GuideRequest::Acts(vec![Demo::Plan]));
        check("think and tool, then think", GuideRequest::Acts(vec![Demo::Think, Demo::Tool]));
        check("@guide show me everything", GuideRequest::Everything);
        check("@guide plan, no: everything!", GuideRequest::Everything);
    }

    #[test]
    fn who_only_says_hello_is_greeted() {
        for text in ["", "@guide", "@guide ?", "@guide hi!", "Hello @guide", "@guide help me"] {
            check(text, GuideRequest::Greeting);
        }
    }

    #[test]
    fn what_needs_a_model_is_no_request() {
        check("@guide what is the capital of France?", GuideRequest::Talk);
        check("@guide we have a plan for the release and I wonder whether it is good", GuideRequest::Talk);
    }

    #[test]
    fn a_chain_goes_to_whoever_is_named() {
        check("@guide chain @coder", chain("coder"));
        check("@guide chain coder.", chain("coder"));
        check("@guide Chain @Plan Writer", chain("Plan Writer"));
        check("@guide chain", GuideRequest::Acts(vec![Demo::Chain(None)]));
        check("@guide chain @guide", GuideRequest::Acts(vec![Demo::Chain(None)]));
    }
}
