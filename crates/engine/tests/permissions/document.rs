//! Writes the permission table as Markdown, for reviewers: `docs/permissions.md`.

use crate::callers::{COLUMNS, CallerKind};
use crate::families::{self, Family};
use crate::table::Row;
use std::fmt::Write;

/// The document. It must be equal to `docs/permissions.md`, which `cargo xtask permissions` writes.
pub fn document() -> String {
    let mut text = String::from(INTRODUCTION);
    for who in COLUMNS {
        writeln!(text, "- **{}:** {}", heading(who), description(who)).expect("a string accepts all text");
    }
    let families = families::families();
    section(&mut text, "Commands", &families, |family| rows(&family.commands, |command| command.name()));
    section(&mut text, "Queries", &families, |family| rows(&family.queries, |query| query.name()));
    text
}

const INTRODUCTION: &str = "# Permissions

The engine's decision for each command and query and each kind of caller. `cargo xtask permissions` generates this file
from the table in `crates/engine/tests/permissions`, which the tests compare with the code. Everything that no row
allows is refused.

A cell is the engine's answer:

- **yes:** the caller may do it. The command may still be refused for its content.
- **no:** the caller may not do it.
- **sign in:** the caller must sign in first.
- **not a member:** the caller is not a member of the room.
- **not found:** the thing does not exist, or the caller may not know that it exists.
- **another's:** the id belongs to another account.
- **kept:** a room must keep its owner.
- **invalid:** the request contradicts itself or the account's rights, and the answer says how.

The column *Situation* names the rows that the store contains besides the room and the caller. *Key* is the scope that
an API key needs; a dash means that no key may do it, or only one with several scopes.

The callers:

";

fn heading(who: CallerKind) -> &'static str {
    match who {
        CallerKind::Anonymous => "Anonymous",
        CallerKind::Revoked => "Revoked",
        CallerKind::NonMember => "User",
        CallerKind::Member => "Member",
        CallerKind::RoomAdmin => "Room admin",
        CallerKind::RoomOwner => "Room owner",
        CallerKind::SiteAdmin => "Site admin",
        CallerKind::AgentOwner => "Agent owner",
        CallerKind::OtherAgentOwner => "Other owner",
        CallerKind::KeyWithout => "Key without",
        CallerKind::KeyWith => "Key with",
        CallerKind::Operator => "Operator",
        CallerKind::Authenticator => "Authenticator",
    }
}

fn description(who: CallerKind) -> &'static str {
    match who {
        CallerKind::Anonymous => "not signed in.",
        CallerKind::Revoked => "the room's owner, after the sign-in was revoked.",
        CallerKind::NonMember => "a signed-in user who is in no room.",
        CallerKind::Member => "a member of the room.",
        CallerKind::RoomAdmin => "an admin of the room.",
        CallerKind::RoomOwner => "the owner of the room.",
        CallerKind::SiteAdmin => "a site admin who is not in the room.",
        CallerKind::AgentOwner => "owns the agent that the command names; not in the room.",
        CallerKind::OtherAgentOwner => "owns another agent; not in the room.",
        CallerKind::KeyWithout => {
            "an API key with all scopes except the one in *Key*, of a user with all rights."
        }
        CallerKind::KeyWith => "an API key with only the scope in *Key*, of a user with all rights.",
        CallerKind::Operator => "the hub itself, and the command line on its machine.",
        CallerKind::Authenticator => "the code of the hub that checks the credentials of clients.",
    }
}

fn section(text: &mut String, title: &str, families: &[Family], lines: impl Fn(&Family) -> String) {
    write!(text, "\n## {title}\n").expect("a string accepts all text");
    for family in families {
        let lines = lines(family);
        if !lines.is_empty() {
            let columns: Vec<_> = COLUMNS.into_iter().map(heading).collect();
            let name = family.name.replace('_', "-");
            let head = format!("| Name | Situation | Key | {} |", columns.join(" | "));
            let rule = "|---".repeat(COLUMNS.len() + 3);
            write!(text, "\n### {}{}\n\n{head}\n{rule}|\n{lines}", name[..1].to_uppercase(), &name[1..])
                .expect("a string accepts all text");
        }
    }
}

fn rows<Request: std::fmt::Debug>(rows: &[Row<Request>], name: impl Fn(&Request) -> &'static str) -> String {
    let mut text = String::new();
    for row in rows {
        let situation = match row.given_name {
            "READY" => String::new(),
            given => given.to_lowercase().replace('_', " "),
        };
        let key = row.scope.map_or("–".into(), |scope| format!("`{}`", scope.as_str()));
        let cells: Vec<_> = row.verdicts().into_iter().map(cell).collect();
        writeln!(text, "| `{}` | {situation} | {key} | {} |", name(&row.request), cells.join(" | "))
            .expect("a string accepts all text");
    }
    text
}

fn cell(verdict: &str) -> &str {
    match verdict {
        "yes" | "no" => verdict,
        "who" => "sign in",
        "out" => "not a member",
        "keep" => "kept",
        "admin" | "path" | "pub" | "none" | "many" | "plans" | "where" => "invalid",
        other if other.starts_with('!') => "another's",
        _ => "not found",
    }
}
