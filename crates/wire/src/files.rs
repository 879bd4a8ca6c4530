//! Description of files in frames and responses of all protocols, and safe file names for headers.

use parlor_model::characters::{is_deceptive, is_visible};
use parlor_model::{Attachment, File, UploadId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Properties and URL of an uploaded file.
#[derive(Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(rename = "Attachment"))]
#[schema(as = Attachment)]
#[serde(rename_all = "camelCase")]
pub struct FileFrame<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub filename: Cow<'a, str>,
    #[serde(borrow)]
    pub mime_type: Cow<'a, str>,
    pub size: u64,
    #[serde(borrow)]
    pub url: Cow<'a, str>,
}

impl<'a> FileFrame<'a> {
    pub fn of(id: &'a UploadId, file: &'a File) -> Self {
        Self {
            id: id.as_str().into(),
            filename: (&*file.name).into(),
            mime_type: file.media.as_str().into(),
            size: file.size,
            url: url(id).into(),
        }
    }
}

impl<'a> From<&'a Attachment> for FileFrame<'a> {
    fn from(attachment: &'a Attachment) -> Self {
        Self::of(&attachment.id, &attachment.file)
    }
}

/// Returns the path from which a file is downloaded.
pub fn url(id: &UploadId) -> String {
    format!("/uploads/{id}")
}

/// Returns a safe file name of at most 200 characters: without folders, control characters and bidirectional
/// text controls. A name without visible characters becomes `file`.
pub fn file_name(given: &str) -> Box<str> {
    let base_name = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let cleaned: String = base_name.chars().filter(|c| !is_deceptive(*c)).take(200).collect();
    match cleaned.trim() {
        "." | ".." => "file".into(),
        name if !name.chars().any(is_visible) => "file".into(),
        name => name.into(),
    }
}

/// Returns a `Content-Disposition` header according to RFC 6266. Only images are displayed inline. The ASCII
/// name for old clients has no characters that could end its quotes.
pub fn disposition(file: &File) -> String {
    let disposition = if file.media.is_image() { "inline" } else { "attachment" };
    let ascii: String = file
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || " ._-()".contains(c) { c } else { '_' })
        .collect();
    let mut encoded = String::new();
    for byte in file.name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{disposition}; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::MediaType;
    use proptest::prelude::*;

    #[test]
    fn a_file_name_is_a_single_safe_line() {
        for (given, name) in [
            ("cat.png", "cat.png"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\ann\\cat.png", "cat.png"),
            ("a\r\nSet-Cookie: b\0\u{1b}.txt", "aSet-Cookie: b.txt"),
            ("photo\u{202e}gnp.exe", "photognp.exe"),
            ("photo\u{200f}.png", "photo.png"),
            ("\u{200b}", "file"),
            ("grüße 🦀.md", "grüße 🦀.md"),
            ("", "file"),
            ("..", "file"),
            ("a/", "file"),
            ("  ", "file"),
        ] {
            assert_eq!(&*file_name(given), name, "{given:?}");
        }
        assert_eq!(file_name(&"é".repeat(500)).chars().count(), 200);
    }

    #[test]
    fn only_images_are_displayed_inline() {
        let file = |name: &str, media| File { name: name.into(), media, size: 1 };
        let png = disposition(&file("cat.png", MediaType::Png));
        assert_eq!(png, "inline; filename=\"cat.png\"; filename*=UTF-8''cat.png");
        let text = disposition(&file("a\"; b=ü.txt", MediaType::Text));
        assert_eq!(text, "attachment; filename=\"a__ b__.txt\"; filename*=UTF-8''a%22%3B%20b%3D%C3%BC.txt");
        for media in MediaType::ALL {
            assert_eq!(disposition(&file("a", media)).starts_with("inline"), media.is_image(), "{media:?}");
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_file_name_breaks_the_header(name in any::<String>()) {
            let header = disposition(&File { name: file_name(&name), media: MediaType::Pdf, size: 1 });
            prop_assert!(header.bytes().all(|b| (b' '..=b'~').contains(&b)), "{header}");
            prop_assert_eq!(header.matches('"').count(), 2);
            prop_assert_eq!(header.matches(';').count(), 2);
        }
    }
}
