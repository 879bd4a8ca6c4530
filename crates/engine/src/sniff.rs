//! What a file is, by its content: looked at while it comes in.
//!
//! A short list of kinds is taken, and everything else refused. Neither what the sender calls it nor its name
//! makes a file something that its bytes are not; a name only tells kinds of text apart, or has a file refused.

use parlor_model::MediaType;

/// How a file of each kind begins. `None` stands for any byte.
const BEGINNINGS: [(MediaType, &[Option<u8>]); 8] = [
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

/// Documents that run what is in them when they are opened, wherever that is.
const DOCUMENTS: [&str; 8] = ["<!doctype", "<html", "<head", "<body", "<script", "<iframe", "<svg", "<?xml"];
const ENDINGS: [&str; 11] =
    ["html", "htm", "xhtml", "xht", "shtml", "mht", "mhtml", "hta", "svg", "svgz", "xml"];

/// Enough for every beginning, with some blank space before that of a document.
const HEAD: usize = 512;

#[derive(Default)]
pub struct Sniffer {
    head: Vec<u8>,
    /// The bytes of a character that goes on in the next piece.
    unfinished: Vec<u8>,
    not_text: bool,
}

impl Sniffer {
    pub fn look(&mut self, bytes: &[u8]) {
        let wanted = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..wanted]);
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

    /// The kind, if it is one that is taken. `name` is the file's.
    pub fn kind(&self, name: &str) -> Option<MediaType> {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        if ENDINGS.contains(&&*ending) {
            return None;
        }
        if let Some((media, _)) = BEGINNINGS.iter().find(|(_, beginning)| self.begins_with(beginning)) {
            return Some(*media);
        }
        let empty = self.head.is_empty();
        if empty || self.not_text || !self.unfinished.is_empty() || self.is_a_document() {
            return None;
        }
        Some(match &*ending {
            "md" | "markdown" => MediaType::Markdown,
            "csv" => MediaType::Csv,
            "json" => MediaType::Json,
            _ => MediaType::Text,
        })
    }

    fn begins_with(&self, beginning: &[Option<u8>]) -> bool {
        self.head.len() >= beginning.len()
            && self
                .head
                .iter()
                .zip(beginning)
                .all(|(byte, wanted)| wanted.is_none_or(|wanted| *byte == wanted))
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
            content.chunks(size).for_each(|piece| sniffer.look(piece));
            assert_eq!(
                sniffer.kind(name),
                expected,
                "{name}: {:?} by {size}",
                content.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn each_kind_is_known_by_its_bytes_whatever_it_is_called() {
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
    fn text_is_what_reads_as_text_and_its_name_says_which() {
        check("a", "grüße 🦀\t\r\n\x1b[1m".as_bytes(), Some(MediaType::Text));
        check("a.rs", b"fn main() {}", Some(MediaType::Text));
        check("README.MD", b"<h1 align=center>Parlor</h1>", Some(MediaType::Markdown));
        check("a.csv", b"a,b\n1,2\n", Some(MediaType::Csv));
        check("a.json", b"{}", Some(MediaType::Json));
    }

    #[test]
    fn everything_else_is_nothing() {
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
    fn documents_that_run_are_refused_by_beginning_and_by_name() {
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
        fn how_it_is_cut_into_pieces_changes_nothing(content in any::<Vec<u8>>(), text in "\\PC*", at in 0..64usize) {
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
