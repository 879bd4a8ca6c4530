//! The API key of a model endpoint. `Debug` hides it, and it is removed from the endpoint's error messages.

use std::fmt;
use std::io;
use std::path::Path;

#[derive(Clone, PartialEq, Eq)]
pub struct Key(Box<str>);

impl Key {
    /// Returns `None` if the key is empty or contains characters that an HTTP header cannot carry.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.into()))
    }

    pub fn from_environment(name: &str) -> Option<Self> {
        Self::new(&std::env::var(name).ok()?)
    }

    pub fn from_file(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Self::new(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the file does not contain a valid key")
        })
    }

    /// The key in plain text. The distinct name makes every use easy to find.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces this key in a text from outside, such as an error message that echoes it.
    pub fn cut_from(&self, text: &str) -> String {
        text.replace(&*self.0, "…")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(********)")
    }
}
