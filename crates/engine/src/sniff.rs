//! Detects the media type of an upload by its content, while it is received.
//!
//! Only a short list of types is accepted. The type declared by the client is ignored. The file name only
//! distinguishes kinds of text, or causes a rejection by its extension.

use parlor_model::MediaType;

/// Signatures of the accepted binary types. `None` matches any byte.
const SIGNATURES: [(MediaType, &[Option<u8>]); 8] = [
    (MediaType::Jpeg, &exactly(*b"\xff\xd8\xff")),
    (MediaType::Png, &exactly(*b"\x89PNG\r\n\x1a\n")),
    (MediaType::Gif, &exactly(*b"GIF87a")),
    (MediaType::Gif, &exactly(*b"GIF89a")),
    (MediaType::Webp, &WEBP),
    (MediaType::Pdf, &exactly(*b"%PDF-")),
    (MediaType::Zip, &exactly(*b"PK\x03\x04")),
    (MediaType::Gzip, &exactly(*b"\x1f\x8b\x08")),
];

const WEBP: [Option<u8>; 12] = {
    let mut bytes = exactly(*b"RIFF....WEBP");
    let mut at = 4;
    while at < 8 {
        bytes[at] = None;
        at += 1;
    }
    bytes
};

const fn exactly<const N: usize>(bytes: [u8; N]) -> [Option<u8>; N] {
    let mut all = [None; N];
    let mut at = 0;
    while at < N {
        all[at] = Some(bytes[at]);
        at += 1;
    }
    all
}

/// Beginnings and extensions of documents that may execute scripts when opened, which are rejected.
const DOCUMENTS: [&str; 8] = ["<!doctype", "<html", "<head", "<body", "<script", "<iframe", "<svg", "<?xml"];
const EXTENSIONS: [&str; 11] =
    ["html", "htm", "xhtml", "xht", "shtml", "mht", "mhtml", "hta", "svg", "svgz", "xml"];

/// Number of bytes inspected for signatures: enough for each of them, and for white space before a document.
const HEAD_BYTES: usize = 512;

#[derive(Default)]
pub struct Sniffer {
    head: Vec<u8>,
    /// Bytes of a character that continues in the next buffer.
    unfinished: Vec<u8>,
    not_text: bool,
}

impl Sniffer {
    pub fn look(&mut self, bytes: &[u8]) {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        if !self.not_text {
            self.look_for_text(bytes);
        }
    }

    fn look_for_text(&mut self, bytes: &[u8]) {
        let joined;
        let bytes = if self.unfinished.is_empty() {
            bytes
        } else {
            joined = [&std::mem::take(&mut self.unfinished), bytes].concat();
            &joined
        };
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                let (text, rest) = bytes.split_at(error.valid_up_to());
                self.unfinished = rest.to_vec();
                std::str::from_utf8(text).unwrap_or_default()
            }
            Err(_) => {
                self.not_text = true;
                return;
            }
        };
        self.not_text = text.bytes().any(|b| b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b));
    }

    /// The media type, if it is accepted. `name` is the file name.
    pub fn kind(&self, name: &str) -> Option<MediaType> {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
        if EXTENSIONS.contains(&&*extension) {
            return None;
        }
        if let Some((media, _)) = SIGNATURES.iter().find(|(_, signature)| self.begins_with(signature)) {
            return Some(*media);
        }
        let empty = self.head.is_empty();
        if empty || self.not_text || !self.unfinished.is_empty() || self.is_a_document() {
            return None;
        }
        Some(match &*extension {
            "md" | "markdown" => MediaType::Markdown,
            "csv" => MediaType::Csv,
            "json" => MediaType::Json,
            _ => MediaType::Text,
        })
    }

    fn begins_with(&self, signature: &[Option<u8>]) -> bool {
        self.head.len() >= signature.len()
            && self
                .head
                .iter()
                .zip(signature)
                .all(|(byte, expected)| expected.is_none_or(|expected| *byte == expected))
    }

    fn is_a_document(&self) -> bool {
        let text = self.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.head).trim_ascii_start();
        DOCUMENTS.iter().any(|start| {
            text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(name: &str, content: &[u8], expected: Option<MediaType>) {
        for size in [1, 2, 3, 7, content.len().max(1)] {
            let mut sniffer = Sniffer::default();
            content.chunks(size).for_each(|buffer| sniffer.look(buffer));
            assert_eq!(
                sniffer.kind(name),
                expected,
                "{name}: {:?} by {size}",
                content.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn binary_types_are_detected_by_their_bytes_whatever_the_name() {
        check("a.txt", b"\xff\xd8\xff\xe0....", Some(MediaType::Jpeg));
        check("a.exe", b"\x89PNG\r\n\x1a\n....", Some(MediaType::Png));
        check("a", b"GIF87a.", Some(MediaType::Gif));
        check("a.js", b"GIF89a/*x*/=alert(1)", Some(MediaType::Gif));
        check("a.webp", b"RIFF\x10\0\0\0WEBPVP8 ", Some(MediaType::Webp));
        check("a.pdf", b"%PDF-1.7\n<script>", Some(MediaType::Pdf));
        check("a.docx", b"PK\x03\x04....", Some(MediaType::Zip));
        check("a.tar.gz", b"\x1f\x8b\x08....", Some(MediaType::Gzip));
    }

    #[test]
    fn text_is_detected_by_its_bytes_and_its_kind_by_the_name() {
        check("a", "grüße 🦀\t\r\n\x1b[1m".as_bytes(), Some(MediaType::Text));
        check("a.rs", b"fn main() {}", Some(MediaType::Text));
        check("README.MD", b"<h1 align=center>Parlor</h1>", Some(MediaType::Markdown));
        check("a.csv", b"a,b\n1,2\n", Some(MediaType::Csv));
        check("a.json", b"{}", Some(MediaType::Json));
    }

    #[test]
    fn all_other_contents_are_rejected() {
        check("a.txt", b"", None);
        check("a.txt", b"a\0b", None);
        check("a.txt", b"a\xc3(", None);
        check("a.txt", b"a\xf0\x9f\xa6", None);
        check("a.webp", b"RIFF\x10\0\0\0WAVEfmt ", None);
        check("a.png", b"\x89PN", None);
        check("a.exe", b"MZ\x90\0", None);
        check("a.bin", b"\x7fELF\x02\x01", None);
    }

    #[test]
    fn documents_with_scripts_are_rejected_by_content_and_by_name() {
        for begins in
            ["<!DOCTYPE html>", "<html>", "\u{feff} \n<sVg onload=alert(1)>", "<?xml version='1.0'?>"]
        {
            check("a.txt", begins.as_bytes(), None);
        }
        for name in ["a.html", "a.HTM", "a.b.svg", ".xhtml", "a.xml"] {
            check(name, b"plain words", None);
            check(name, b"GIF89a", None);
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn the_buffer_boundaries_do_not_matter(content in any::<Vec<u8>>(), text in "\\PC*", at in 0..64usize) {
            for content in [content, text.into_bytes()] {
                let (mut whole, mut cut) = (Sniffer::default(), Sniffer::default());
                whole.look(&content);
                let (one, other) = content.split_at(at.min(content.len()));
                cut.look(one);
                cut.look(other);
                prop_assert_eq!(whole.kind("a"), cut.kind("a"));
            }
        }
    }
}
