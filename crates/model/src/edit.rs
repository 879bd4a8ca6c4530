//! Edit of an optional value: part of commands that change an existing entity.

use serde::{Deserialize, Serialize};

/// Change of an optional value. Unlike a nested `Option`, it survives encoding: a kept and a cleared value stay
/// different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Edit<T> {
    /// The value stays as it is.
    #[default]
    Keep,
    /// The value becomes absent.
    Clear,
    Set(T),
}

impl<T> Edit<T> {
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// Returns the value to set, if any.
    pub fn new_value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// Returns the value after the edit of `current`.
    pub fn apply(&self, current: &Option<T>) -> Option<T>
    where
        T: Clone,
    {
        match self {
            Self::Keep => current.clone(),
            Self::Clear => None,
            Self::Set(value) => Some(value.clone()),
        }
    }

    pub fn apply_to(&self, value: &mut Option<T>)
    where
        T: Clone,
    {
        if !self.is_keep() {
            *value = self.new_value().cloned();
        }
    }

    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Edit<U> {
        match self {
            Self::Keep => Edit::Keep,
            Self::Clear => Edit::Clear,
            Self::Set(value) => Edit::Set(change(value)),
        }
    }
}

/// Converts a field of a request body: absent, `null`, or a value.
impl<T> From<Option<Option<T>>> for Edit<T> {
    fn from(field: Option<Option<T>>) -> Self {
        match field {
            None => Self::Keep,
            Some(None) => Self::Clear,
            Some(Some(value)) => Self::Set(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_keeps_clears_or_sets_a_value() {
        let current = Some(1);
        assert_eq!(Edit::Keep.apply(&current), Some(1));
        assert_eq!(Edit::Clear.apply(&current), None);
        assert_eq!(Edit::Set(2).apply(&current), Some(2));
        assert_eq!(Edit::from(None::<Option<u8>>), Edit::Keep);
        assert_eq!(Edit::from(Some(None::<u8>)), Edit::Clear);
        assert_eq!(Edit::from(Some(Some(3))).map(|value| value + 1), Edit::Set(4));
    }
}
