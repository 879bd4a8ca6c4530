//! A text that must not be shown by accident.
//!
//! Owns: masking in `Debug`, so a secret inside a derived `Debug` never reaches a log.
//! Never: serialises by itself; a field that has to cross a socket names [`exposed`] and so says it on purpose.

use std::fmt;

/// Holds a password, key or signing secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Gives the text; the long name makes every use easy to find in review.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(********)")
    }
}

/// Lets one field be written out: `#[serde(with = "crate::secret::exposed")]`.
pub mod exposed {
    use super::Secret;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(secret.expose())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_shows_the_text() {
        let shown = format!("{:?}", Some(Secret::new("hunter2")));
        assert_eq!(shown, "Some(Secret(********))");
    }
}
