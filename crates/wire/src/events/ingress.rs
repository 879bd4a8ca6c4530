//! What a chat message says before its text begins.

/// `@agent text` speaks to that agent, if there is one. Gives whom it names, by id or by name, and what is left.
pub fn addressed(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('@')?.split_once(char::is_whitespace)?;
    let plain =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let rest = rest.trim_start();
    if !plain || rest.is_empty() {
        return None;
    }
    Some((name, rest))
}

/// The content of a picture in base64, which may say before what it is.
pub fn picture(text: &str) -> &str {
    match text.split_once(";base64,") {
        Some((kind, content)) if kind.starts_with("data:") => content,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_a_text_behind_it_speaks_to_another_agent() {
        assert_eq!(addressed("@coder fix it"), Some(("coder", "fix it")));
        assert_eq!(addressed("@co-der_2\n fix it"), Some(("co-der_2", "fix it")));
        for verbatim in
            ["coder fix it", "@coder", "@coder  ", "@ fix it", "@a/b fix it", "@é fix it", "a @coder b"]
        {
            assert_eq!(addressed(verbatim), None, "{verbatim}");
        }
    }

    #[test]
    fn a_picture_may_say_what_it_is() {
        assert_eq!(picture("data:image/png;base64,AAAA"), "AAAA");
        assert_eq!(picture("AAAA"), "AAAA");
    }
}
