//! Uploaded files: media types, content digests, and attachment to messages.

use crate::{MessageId, Time, UploadId, UserId};
use serde::{Deserialize, Serialize};

/// Accepted media types. The hub detects the type from the content, not from the file name or the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MediaType {
    Jpeg,
    Png,
    Gif,
    Webp,
    Pdf,
    Zip,
    Gzip,
    Text,
    Markdown,
    Csv,
    Json,
}

impl MediaType {
    pub const ALL: [Self; 11] = [
        Self::Jpeg,
        Self::Png,
        Self::Gif,
        Self::Webp,
        Self::Pdf,
        Self::Zip,
        Self::Gzip,
        Self::Text,
        Self::Markdown,
        Self::Csv,
        Self::Json,
    ];

    /// Returns the IANA media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Pdf => "application/pdf",
            Self::Zip => "application/zip",
            Self::Gzip => "application/gzip",
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Csv => "text/csv",
            Self::Json => "application/json",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|media| media.as_str() == text)
    }

    /// Returns whether a browser may display it inline: raster images only, which cannot contain scripts.
    pub fn is_image(self) -> bool {
        matches!(self, Self::Jpeg | Self::Png | Self::Gif | Self::Webp)
    }
}

/// SHA-256 of a file's content, used as its key in the blob store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlobDigest(pub [u8; 32]);

impl std::fmt::Debug for BlobDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlobDigest({self})")
    }
}

impl std::fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl BlobDigest {
    pub fn parse(hex: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if hex.len() != 64 || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(0..) {
            *byte = u8::from_str_radix(&hex[pair * 2..pair * 2 + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// Use of an uploaded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UploadPurpose {
    /// Not used yet. Its owner may attach it to a message until it expires.
    Unattached,
    /// Attached to this message; cannot be attached to another.
    Message(MessageId),
    /// Avatar of its owner.
    Avatar,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    pub id: UploadId,
    pub owner: UserId,
    pub file: File,
    pub digest: BlobDigest,
    pub created_at: Time,
    pub purpose: UploadPurpose,
}

/// Properties of a file that clients see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub name: Box<str>,
    pub media: MediaType,
    pub size: u64,
}

/// A file attached to a message. It does not change while the message exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub id: UploadId,
    pub file: File,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_parses_its_own_display_form() {
        let digest = BlobDigest([0xa7; 32]);
        assert_eq!(BlobDigest::parse(&digest.to_string()), Some(digest));
        for bad in ["", "..", &"A7".repeat(32), &"é".repeat(32), &"a7".repeat(33)] {
            assert_eq!(BlobDigest::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_media_type_is_parsed_from_its_name() {
        for media in MediaType::ALL {
            assert_eq!(MediaType::parse(media.as_str()), Some(media));
        }
        assert_eq!(MediaType::parse("text/html"), None);
    }
}
