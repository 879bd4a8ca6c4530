//! Embedded files of the web app: the output of the npm build of `web/`, with gzip and Brotli copies.
//!
//! Looks up files by path. HTTP headers such as caching and content types are up to the server.

use rust_embed::{Embed, EmbeddedFile};
use std::borrow::Cow;

#[derive(Embed)]
#[folder = "$OUT_DIR/dist"]
struct Files;

/// One embedded file.
pub struct Asset {
    pub bytes: Cow<'static, [u8]>,
    /// SHA-256 of `bytes`.
    pub digest: [u8; 32],
    /// Compressed copies of `bytes`. Present for text, absent for images and fonts.
    pub gzip: Option<Cow<'static, [u8]>>,
    pub brotli: Option<Cow<'static, [u8]>>,
}

/// The HTML document of the app, served for all its routes.
pub fn index() -> Asset {
    find("index.html").expect("the build script always creates index.html")
}

/// Finds a file by its path below the web root, such as `app/icon.svg`.
pub fn find(path: &str) -> Option<Asset> {
    let EmbeddedFile { data, metadata } = Files::get(path)?;
    let compressed = |ending| Files::get(&format!("{path}.{ending}")).map(|file| file.data);
    let (gzip, brotli) = (compressed("gz"), compressed("br"));
    Some(Asset { bytes: data, digest: metadata.sha256_hash(), gzip, brotli })
}

/// Paths of all files, without the compressed copies.
pub fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter().filter(|path| !path.ends_with(".gz") && !path.ends_with(".br"))
}
