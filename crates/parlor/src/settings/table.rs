//! What the program knows of each setting, and the macro that makes it from one entry.
//!
//! Owns: the entry type. The names in the environment, the example file, the checks and the
//! `Settings` struct all derive from the same entry, so none of them can be forgotten.

use toml::Value;

/// Settings that belong together in the example file.
pub struct Group {
    pub title: &'static str,
    pub entries: &'static [Entry],
}

/// One setting.
pub struct Entry {
    pub key: &'static str,
    pub docs: &'static [&'static str],
    pub presence: Presence,
    /// Makes a TOML value of the text in the environment or in a flag.
    pub parse_text: fn(&str) -> Result<Value, String>,
}

/// What holds when nobody sets it.
pub enum Presence {
    Default(fn() -> Value),
    /// Stays unset; the example shows how a value looks.
    Optional(fn() -> Value),
    /// Stays unset; never printed, and may also be given as the name of a file.
    Secret,
}

impl Entry {
    pub fn variable(&self) -> String {
        format!("PARLOR_{}", self.key.to_ascii_uppercase())
    }

    /// The key that names a file with the value, for those who keep secrets in files.
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

/// Makes the `Settings` struct and its table.
///
/// An entry is `key: type = form, default value;`, or `example value` for an optional setting,
/// or `secret` for an optional one that is never shown.
macro_rules! settings {
    ($( $title:literal { $(
        $(#[doc = $doc:literal])*
        $key:ident : $type:ty = $form:expr, $presence:ident $($value:expr)? ;
    )* } )*) => {
        /// Everything that can be set, checked and ready to use.
        #[derive(Clone, Debug)]
        pub struct Settings { $($(
            $(#[doc = $doc])*
            pub $key: $type,
        )*)* }

        /// Every setting, in the order of the example file.
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
            /// Reads each value by its form; what does not fit is added to the problems.
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
