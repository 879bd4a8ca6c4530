//! The commented example file, made from the table.

use super::{
    GROUPS,
    table::{Entry, Presence},
};
use std::fmt::Write;

const HEAD: &str = "\
# Settings of Parlor.
#
# Every line below is the default; take away the leading # of those you change.
# Each setting is also a variable: listen is PARLOR_LISTEN. A flag wins over a variable, a
# variable over this file. A variable that is empty counts as not set. A secret can also be
# kept in a file of its own: admin_password_file = \"/run/secrets/admin\", or
# PARLOR_ADMIN_PASSWORD_FILE.
";

/// Renders every setting with its documentation and its default, commented out.
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
        Presence::Optional(value) => writeln!(text, "# Not set unless you do.\n#{} = {}", entry.key, value()),
        Presence::Secret => writeln!(text, "# Not set unless you do.\n#{} = \"…\"", entry.key),
    };
}
