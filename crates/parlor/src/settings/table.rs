//! Metadata of each setting, and the macro that generates it from one entry.
//!
//! Owns: the entry type. The environment variables, the example file, the validation and the `Settings`
//! struct are all derived from the same entry, so they cannot diverge.

use toml::Value;

/// Settings under one heading in the example file.
pub struct Group {
    pub title: &'static str,
    pub entries: &'static [Entry],
}

/// Metadata of one setting.
pub struct Entry {
    pub key: &'static str,
    pub docs: &'static [&'static str],
    pub presence: Presence,
    /// Converts the text of an environment variable or a flag to a TOML value.
    pub parse_text: fn(&str) -> Result<Value, String>,
}

/// Value of a setting that no source sets.
pub enum Presence {
    Default(fn() -> Value),
    /// Unset by default. The value is only an illustration for the example file.
    Optional(fn() -> Value),
    /// Unset by default. The value is never printed, and can also be read from a file (`…_file`).
    Secret,
}

impl Entry {
    pub fn variable(&self) -> String {
        format!("PARLOR_{}", self.key.to_ascii_uppercase())
    }

    /// Returns the key (`…_file`) that names a file with the value. Only secrets have one.
    pub fn file_key(&self) -> Option<String> {
        self.is_secret().then(|| format!("{}_file", self.key))
    }

    pub fn file_variable(&self) -> Option<String> {
        self.is_secret().then(|| format!("{}_FILE", self.variable()))
    }

    pub fn is_secret(&self) -> bool {
        matches!(self.presence, Presence::Secret)
    }
}

/// Generates the `Settings` struct and the table `GROUPS`.
///
/// An entry is `key: type = setting type, default value;`. `example value` instead of `default value` makes
/// the setting optional; `secret` makes it optional and never printed.
macro_rules! settings {
    ($( $title:literal { $(
        $(#[doc = $doc:literal])*
        $key:ident : $type:ty = $form:expr, $presence:ident $($value:expr)? ;
    )* } )*) => {
        /// Validated values of all settings.
        #[derive(Clone, Debug)]
        pub struct Settings { $($(
            $(#[doc = $doc])*
            pub $key: $type,
        )*)* }

        /// All settings by group, in the order of the example file.
        pub static GROUPS: &[$crate::settings::table::Group] = &[ $(
            $crate::settings::table::Group { title: $title, entries: &[ $(
                $crate::settings::table::Entry {
                    key: stringify!($key),
                    docs: &[$($doc),*],
                    presence: $crate::settings::table::settings!(@presence $presence $($value)?),
                    parse_text: |text| $crate::settings::table::settings!(@text $presence $type, &$form, text),
                },
            )* ] },
        )* ];

        impl Settings {
            /// Parses each value by its setting type. Returns `None` if a value is invalid; the reader
            /// collects the problems.
            fn assemble(reader: &mut $crate::settings::layers::SettingReader<'_>) -> Option<Self> {
                $($( let $key = $crate::settings::table::settings!(@read $presence reader, stringify!($key), &$form); )*)*
                Some(Self { $($( $key: $key?, )*)* })
            }
        }
    };
    (@presence default $value:expr) => {
        $crate::settings::table::Presence::Default(|| toml::Value::from($value))
    };
    (@presence example $value:expr) => {
        $crate::settings::table::Presence::Optional(|| toml::Value::from($value))
    };
    (@presence secret) => { $crate::settings::table::Presence::Secret };
    (@text default $type:ty, $form:expr, $text:expr) => {
        $crate::settings::types::text_for::<$type, _>($form, $text)
    };
    (@text $optional:ident $type:ty, $form:expr, $text:expr) => {
        $crate::settings::types::SettingType::parse_text($form, $text)
    };
    (@read default $reader:ident, $key:expr, $form:expr) => { $reader.required($key, $form) };
    (@read $optional:ident $reader:ident, $key:expr, $form:expr) => { $reader.optional($key, $form) };
}

pub(crate) use settings;
