//! Resolves the members that a message mentions.
//!
//! `@name` matches the name or handle of a member, ignoring case. The longest match wins, and a name may
//! contain spaces. A mention must not touch a word character on either side, and `@` in Markdown code is
//! ignored.

use crate::{Member, MemberId, Mention};
use std::collections::{HashMap, HashSet};
use unicode_normalization::UnicodeNormalization;

/// Returns the members listed in `given` (names or ids) or mentioned in `text`, each once, in the order in which
/// they are first named.
pub fn resolve<M: Named>(text: &str, given: &[Box<str>], members: &[M]) -> Vec<Mention> {
    let positions = if members.is_empty() { Vec::new() } else { at_positions(text) };
    if positions.is_empty() && given.is_empty() {
        return Vec::new();
    }
    let names = Names::of(members);
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |index: usize| {
        if seen.insert(index) {
            found.push(index);
        }
    };
    for requested in given {
        let requested = requested.strip_prefix('@').unwrap_or(requested);
        let by_id = members.iter().position(|m| m.member().as_str() == requested);
        if let Some(index) = by_id.into_iter().chain(names.exact(requested)).min() {
            add(index);
        }
    }
    for at in positions {
        if let Some(index) = names.longest_prefix(&text[at + 1..]) {
            add(index);
        }
    }
    let mention = |index: usize| {
        let member = &members[index];
        Mention { member: member.member().clone(), name: member.name().into() }
    };
    found.into_iter().map(mention).collect()
}

/// Returns whether a member has this id, name or handle, ignoring case.
pub fn is_named<M: Named>(member: &M, name: &str) -> bool {
    let folded = fold_case(name);
    member.member().as_str() == name
        || [member.name(), member.handle()].into_iter().any(|own| fold_case(own) == folded)
}

/// Returns whether two names are equal, ignoring case.
pub fn same_name(left: &str, right: &str) -> bool {
    fold_case(left) == fold_case(right)
}

/// Returns the key that two names of members of one room must not share: names that differ only in case, or in
/// compatibility forms such as full-width letters, have the same key.
pub fn name_key(name: &str) -> Box<str> {
    if name.is_ascii() {
        return name.to_ascii_lowercase().into();
    }
    let folded: String = name.nfkc().flat_map(char::to_lowercase).collect();
    folded.into()
}

/// A member with the names that a text can mention it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mentionable {
    pub member: MemberId,
    pub name: Box<str>,
    pub handle: Box<str>,
}

impl From<Member> for Mentionable {
    fn from(member: Member) -> Self {
        Self { member: member.member, name: member.name, handle: member.handle }
    }
}

/// Gives [`resolve`] the names of a member.
pub trait Named {
    fn member(&self) -> &MemberId;
    fn name(&self) -> &str;
    fn handle(&self) -> &str;
}

macro_rules! named {
    ($type:ty) => {
        impl Named for $type {
            fn member(&self) -> &MemberId {
                &self.member
            }

            fn name(&self) -> &str {
                &self.name
            }

            fn handle(&self) -> &str {
                &self.handle
            }
        }
    };
}
named!(Member);
named!(Mentionable);

/// Case-folded names grouped by their length in bytes, each with the index of the first member that has it. The name of
/// a member takes precedence over the handle of another. A lookup reads the text after an `@` once, regardless of the number of members and the similarity of their
/// names.
struct Names(HashMap<usize, HashMap<String, usize>>);

impl Names {
    fn of<M: Named>(members: &[M]) -> Self {
        let mut by_length: HashMap<usize, HashMap<String, usize>> = HashMap::new();
        let names = members.iter().enumerate().map(|(index, member)| (member.name(), index));
        let handles = members.iter().enumerate().map(|(index, member)| (member.handle(), index));
        for (name, index) in names.chain(handles).filter(|(name, _)| !name.is_empty()) {
            by_length.entry(name.len()).or_default().entry(fold_case(name)).or_insert(index);
        }
        Self(by_length)
    }

    /// Returns the index of the first member whose whole name or handle equals `name`, ignoring case.
    fn exact(&self, name: &str) -> Option<usize> {
        let name = fold_case(name);
        self.0.values().filter_map(|names| names.get(&name)).min().copied()
    }

    /// Returns the index of the member with the longest name that `text` starts with.
    fn longest_prefix(&self, text: &str) -> Option<usize> {
        let longest = self.0.keys().max().copied().unwrap_or_default();
        let mut found = None;
        let mut read = String::new();
        for (at, c) in text.char_indices().take_while(|(at, _)| *at < longest) {
            let end = at + c.len_utf8();
            read.extend(c.to_lowercase());
            let hit = self.0.get(&end).and_then(|names| names.get(&read));
            if hit.is_some() && !text[end..].chars().next().is_some_and(is_word) {
                found = hit.copied();
            }
        }
        found
    }
}

fn fold_case(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// Maximum number of `@` characters examined in one message. Bounds the work for hostile texts.
const MAX_MENTIONS: usize = 200;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Returns the byte offsets of every `@` that may start a mention.
fn at_positions(text: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let closings = last_fences(text);
    let mut code: Option<usize> = None;
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if places.len() == MAX_MENTIONS {
            break;
        }
        if c == '`' {
            let mut run = 1;
            while chars.next_if(|(_, c)| *c == '`').is_some() {
                run += 1;
            }
            code = match code {
                Some(open) if open == run => None,
                Some(open) => Some(open),
                // Backticks without a matching closing run are plain text, not code up to the end of the
                // message.
                None if closings[&run] > at => Some(run),
                None => None,
            };
        } else if c == '@' && code.is_none() && !before.is_some_and(is_word) {
            places.push(at);
        }
        before = Some(c);
    }
    places
}

/// Returns the byte offset of the last backtick run of each length. Computed once, because searching the rest
/// of the text for the closing run of each opening run takes quadratic time.
fn last_fences(text: &str) -> HashMap<usize, usize> {
    let mut last = HashMap::new();
    let (mut run, mut from) = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        if byte != b'`' {
            run = 0;
            continue;
        }
        if run == 0 {
            from = at;
        }
        run += 1;
        if text.as_bytes().get(at + 1) != Some(&b'`') {
            last.insert(run, from);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemberId, RoomId, RoomRole, Seq, Time, UserId};

    fn member(name: &str) -> Member {
        Member {
            room: RoomId::stored("r"),
            member: MemberId::User(UserId::stored(format!("id-{}", name.replace(' ', "")))),
            role: RoomRole::Member,
            role_description: None,
            name: name.into(),
            handle: name.replace(' ', ".").into(),
            joined_at: Time(0),
            read_through: Seq(0),
            read_at: None,
            room_preferences: Default::default(),
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let members: Vec<_> = ["ann", "Ann Lee", "bob", "Zoë"].map(member).into();
        let found = resolve(text, &[], &members);
        let names: Vec<&str> = found.iter().map(|m| &*m.name).collect();
        assert_eq!(names, expected, "{text}");
    }

    #[test]
    fn mentions_ignore_case() {
        check("hello @BOB, and @zoë!", &["bob", "Zoë"]);
    }

    #[test]
    fn the_longest_name_wins() {
        check("@ann lee?", &["Ann Lee"]);
        check("@ann leeway", &["ann"]);
        check("@ann, @Ann Lee", &["ann", "Ann Lee"]);
    }

    #[test]
    fn a_user_can_be_mentioned_by_their_sign_in_name() {
        check("@ann.lee, are you there?", &["Ann Lee"]);
    }

    #[test]
    fn email_addresses_longer_words_and_code_contain_no_mention() {
        check("mail@bob.example", &[]);
        check("@bobby @bob_ @bob-2", &[]);
        check("`@bob` and ```\n@ann\n```", &[]);
        check("a ` alone, @bob", &["bob"]);
        check("a ` alone, ```@ann``` and @bob", &["bob"]);
        check("``@ann ` still`` and @bob", &["bob"]);
        check("@", &[]);
    }

    #[test]
    fn mentions_have_the_order_in_which_the_members_are_named() {
        let members = [member("ann"), member("bob"), member("cy")];
        let found = resolve("@bob, then @ann and @bob", &["cy".into()], &members);
        assert_eq!(found.iter().map(|m| &*m.name).collect::<Vec<_>>(), ["cy", "bob", "ann"]);
    }

    #[test]
    fn given_names_and_ids_are_mentions_and_unknown_ones_are_ignored() {
        let members = [member("ann"), member("bob")];
        let found = resolve("", &["id-ann".into(), "@Bob".into(), "ghost".into()], &members);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn unclosed_backtick_runs_take_linear_time() {
        // Each run is shorter than the previous one, so no run closes another. A separate search for the
        // closing run of each would read five hundred million characters.
        let runs = (1..1400).rev().map(|length| "`".repeat(length));
        check(&format!("@bob {}", runs.collect::<Vec<_>>().join(" ")), &["bob"]);
    }

    #[test]
    fn similar_names_do_not_slow_down_the_lookup() {
        // A thousand names share a prefix that the text mentions two hundred times. Comparing each name in
        // turn would compare twenty million characters for one message.
        let alike = |number: usize| format!("{}{number:04}", "a".repeat(90));
        let members: Vec<_> = (0..1000).map(|number| member(&alike(number))).collect();
        let text = format!("@{} ", alike(9999)).repeat(199) + &format!("@{}", alike(7).to_uppercase());
        let found = resolve(&text, &[alike(3).into()], &members);
        assert_eq!(found.iter().map(|m| m.name.to_string()).collect::<Vec<_>>(), [alike(3), alike(7)]);
    }

    #[test]
    fn a_name_takes_precedence_over_the_handle_of_another_member() {
        let members = [Member { handle: "bot".into(), ..member("Ann") }, member("bot")];
        for (text, given) in [("@bot", None), ("", Some("Bot".into()))] {
            let found = resolve(text, given.as_slice(), &members);
            assert_eq!(found.iter().map(|m| &*m.name).collect::<Vec<_>>(), ["bot"]);
        }
    }

    #[test]
    fn names_that_look_alike_have_the_same_key() {
        for (name, other) in [("Bot", "bot"), ("ＢＯＴ", "bot"), ("ZOË", "zoe\u{308}"), ("①", "1")] {
            assert_eq!(name_key(name), name_key(other), "{name} {other}");
        }
        assert_ne!(name_key("bot"), name_key("bot2"));
    }

    #[test]
    fn of_two_members_with_one_name_the_first_is_mentioned() {
        let members = [member("Ann"), member("bob"), Member { handle: "other".into(), ..member("ANN") }];
        for (text, given) in [("@ann", None), ("", Some("aNN".into()))] {
            let found = resolve(text, given.as_slice(), &members);
            assert_eq!(found.iter().map(|m| &*m.name).collect::<Vec<_>>(), ["Ann"]);
        }
    }
}
