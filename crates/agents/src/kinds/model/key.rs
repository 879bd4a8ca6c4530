//! What opens an endpoint. Never shown: not by `Debug`, and cut out of what an endpoint says back.

use std::fmt;
use std::io;
use std::path::Path;

#[derive(Clone, PartialEq, Eq)]
pub struct Key(Box<str>);

impl Key {
    /// `None` for one that no header can carry.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.into()))
    }

    pub fn from_environment(name: &str) -> Option<Self> {
        Self::new(&std::env::var(name).ok()?)
    }

    pub fn from_file(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Self::new(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "there is no key in it"))
    }

    /// The text; the long name makes every use easy to find.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A text of others without this key in it.
    pub fn cut_from(&self, text: &str) -> String {
        text.replace(&*self.0, "…")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(********)")
    }
}
