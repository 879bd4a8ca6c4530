//! The web page as files, embedded: what npm made of `web/`, each with its compressed forms.
//!
//! Owns: finding a file. Never: what a browser is told about it.

use rust_embed::{Embed, EmbeddedFile};
use std::borrow::Cow;

#[derive(Embed)]
#[folder = "$OUT_DIR/dist"]
struct Files;

/// One file of the page.
pub struct Asset {
    pub bytes: Cow<'static, [u8]>,
    /// Changes with the content and with nothing else.
    pub digest: [u8; 32],
    /// The same, made smaller: there for text, not for pictures and fonts.
    pub gzip: Option<Cow<'static, [u8]>>,
    pub brotli: Option<Cow<'static, [u8]>>,
}

/// The document that every address of the page answers with.
pub fn index() -> Asset {
    find("index.html").expect("the build script puts an index there, whatever else it can do")
}

/// A file by its path below the root of the site, such as `app/icon.svg`.
pub fn find(path: &str) -> Option<Asset> {
    let EmbeddedFile { data, metadata } = Files::get(path)?;
    let compressed = |ending| Files::get(&format!("{path}.{ending}")).map(|file| file.data);
    let (gzip, brotli) = (compressed("gz"), compressed("br"));
    Some(Asset { bytes: data, digest: metadata.sha256_hash(), gzip, brotli })
}

/// Every path that can be found, the compressed forms apart.
pub fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter().filter(|path| !path.ends_with(".gz") && !path.ends_with(".br"))
}
