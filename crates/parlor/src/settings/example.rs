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

const TAIL: &str = "

## Files of agents

# Each entry connects the file .workplace/chat.md of a project with a room: lines of the file
# become messages of the room, and messages become lines. The account must be a member of the
# room; lines of its own agents are posted as those agents.
#[[chatmd]]
#dir = \"/srv/project\"
#room = \"…\"
#account = \"ada\"
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
    text + TAIL
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
