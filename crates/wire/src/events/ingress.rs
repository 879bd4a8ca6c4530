//! Parses the prefix of a chat message (`@agent`) and of an inline image.

/// Splits `@agent text` into the id or name of the agent and the text. `None` if the text has no such prefix.
pub fn addressed(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('@')?.split_once(char::is_whitespace)?;
    let is_identifier =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let rest = rest.trim_start();
    if !is_identifier || rest.is_empty() {
        return None;
    }
    Some((name, rest))
}

/// Returns the base64 content of an image, without a `data:…;base64,` prefix.
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
    fn only_an_identifier_followed_by_text_addresses_an_agent() {
        assert_eq!(addressed("@coder fix it"), Some(("coder", "fix it")));
        assert_eq!(addressed("@co-der_2\n fix it"), Some(("co-der_2", "fix it")));
        for verbatim in
            ["coder fix it", "@coder", "@coder  ", "@ fix it", "@a/b fix it", "@é fix it", "a @coder b"]
        {
            assert_eq!(addressed(verbatim), None, "{verbatim}");
        }
    }

    #[test]
    fn an_image_may_have_a_data_url_prefix() {
        assert_eq!(picture("data:image/png;base64,AAAA"), "AAAA");
        assert_eq!(picture("AAAA"), "AAAA");
    }
}
