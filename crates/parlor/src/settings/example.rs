//! Renders the commented example file for `parlor config example` from the settings table.

use super::{
    GROUPS,
    table::{Entry, Presence},
};
use std::fmt::Write;

const HEAD: &str = "\
# Settings of Parlor.
#
# Every line below is the default; remove the leading # to change a setting.
# Each setting is also an environment variable: listen is PARLOR_LISTEN. A flag overrides a
# variable, a variable overrides this file. An empty variable counts as not set. A secret can
# also be read from a separate file: admin_password_file = \"/run/secrets/admin\", or
# PARLOR_ADMIN_PASSWORD_FILE.
";

/// Renders every setting with its description and its default, commented out.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    for group in GROUPS {
        let _ = write!(text, "\n\n## {}\n", group.title);
        for entry in group.entries {
            text.push('\n');
            write_entry(&mut text, entry);
        }
    }
    text
}

fn write_entry(text: &mut String, entry: &Entry) {
    for line in entry.docs {
        let _ = writeln!(text, "# {}", line.trim());
    }
    let _ = match &entry.presence {
        Presence::Default(value) => writeln!(text, "#{} = {}", entry.key, value()),
        Presence::Optional(value) => writeln!(text, "# Not set by default.\n#{} = {}", entry.key, value()),
        Presence::Secret => writeln!(text, "# Not set by default.\n#{} = \"…\"", entry.key),
    };
}
