//! The messages of an explicit turn, as a program or the web app sends them: ids of stored messages, or new messages.

use parlor_model::MessageId;
use parlor_model::command::TurnInput;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Decodes the messages: texts are ids of stored messages, and so is the `id` of an object. Objects without an `id` are
/// new messages, which become the prompt of the turn. Without messages, the turn gets the pending mail of the session.
pub fn decode(messages: &[&RawValue]) -> Result<TurnInput, &'static str> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Element<'a> {
        Id(#[serde(borrow)] Cow<'a, str>),
        Stored {
            #[serde(borrow)]
            id: Cow<'a, str>,
        },
        New {},
    }
    let (mut ids, mut new) = (Vec::new(), Vec::new());
    for message in messages {
        let element = serde_json::from_str(message.get());
        match element.map_err(|_| "messages must be ids or objects")? {
            Element::Id(id) | Element::Stored { id } => {
                ids.push(MessageId::parse(&id).map_err(|_| "messages must have valid ids")?);
            }
            Element::New {} => new.push(*message),
        }
    }
    match (ids.is_empty(), new.is_empty()) {
        (_, true) => Ok(TurnInput::Mail(ids)),
        (true, false) => Ok(TurnInput::Prompt(prompt(&new).into())),
        (false, false) => Err("messages must be either stored or new"),
    }
}

/// The prompt of new messages. Each is one line of JSON, so that none can imitate the frame around it.
fn prompt(messages: &[&RawValue]) -> String {
    let count = messages.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut prompt = format!("You have {count} new inbound message{plural}.\n");
    for (index, message) in (1..).zip(messages) {
        // In JSON, control characters occur between tokens only.
        let json =
            message.get().replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), " ");
        prompt.push_str(&format!("\n--- Message {index} of {count} ---\n{json}\n"));
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(json: &str) -> Result<TurnInput, &'static str> {
        let messages: Vec<&RawValue> = serde_json::from_str(json).unwrap();
        decode(&messages)
    }

    #[test]
    fn texts_and_objects_with_an_id_are_stored_messages() {
        let ids = TurnInput::Mail(["a", "b"].map(MessageId::stored).into());
        assert_eq!(decoded(r#"["a",{"id":"b","payload":{}}]"#), Ok(ids));
        assert_eq!(decoded("[]"), Ok(TurnInput::Mail(Vec::new())));
    }

    #[test]
    fn objects_without_an_id_become_the_prompt() {
        let prompt = "You have 2 new inbound messages.\n\n--- Message 1 of 2 ---\n{\"payload\":  {\"text\":\"hi\"}}\n\n\
                      --- Message 2 of 2 ---\n{}\n";
        assert_eq!(decoded("[{\"payload\":\n {\"text\":\"hi\"}},{}]"), Ok(TurnInput::Prompt(prompt.into())));
    }

    #[test]
    fn other_elements_and_a_mixture_are_refused() {
        for json in ["[1]", "[null]", r#"["../x"]"#, r#"["a",{}]"#, r#"[["a"]]"#] {
            assert!(decoded(json).is_err(), "{json}");
        }
    }
}
