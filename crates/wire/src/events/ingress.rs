//! Parses inline images of chat messages.

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
    fn an_image_may_have_a_data_url_prefix() {
        assert_eq!(picture("data:image/png;base64,AAAA"), "AAAA");
        assert_eq!(picture("AAAA"), "AAAA");
    }
}
