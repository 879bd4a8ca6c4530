//! Finds who a text addresses.
//!
//! `@name` matches members without regard to case, the longest name first, names of several words
//! allowed; not right after a word character, not before one, and not inside code.

use crate::{Member, Mention};
use std::collections::HashMap;

/// The members that `text` or `given` (names or ids) mention, each once, in the order of the members.
pub fn resolve(text: &str, given: &[Box<str>], members: &[Member]) -> Vec<Mention> {
    let ats = if members.is_empty() { Vec::new() } else { ats(text) };
    if ats.is_empty() && given.is_empty() {
        return Vec::new();
    }
    let names = Names::of(members);
    let mut found = vec![false; members.len()];
    for wanted in given {
        let wanted = wanted.strip_prefix('@').unwrap_or(wanted);
        let by_id = members.iter().position(|m| m.member.as_str() == wanted);
        if let Some(index) = by_id.into_iter().chain(names.called(wanted)).min() {
            found[index] = true;
        }
    }
    for at in ats {
        if let Some(index) = names.beginning(&text[at + 1..]) {
            found[index] = true;
        }
    }
    members
        .iter()
        .zip(found)
        .filter(|(_, found)| *found)
        .map(|(member, _)| Mention { member: member.member.clone(), name: member.name.clone() })
        .collect()
}

/// Names by their length in bytes, without regard to case, each with the first who has it: what follows an `@` is read
/// once, however many members there are and however alike their names.
struct Names(HashMap<usize, HashMap<String, usize>>);

impl Names {
    fn of(members: &[Member]) -> Self {
        let mut by_length: HashMap<usize, HashMap<String, usize>> = HashMap::new();
        let names = members.iter().enumerate().flat_map(|(i, m)| [(&*m.name, i), (&*m.handle, i)]);
        for (name, index) in names.filter(|(name, _)| !name.is_empty()) {
            by_length.entry(name.len()).or_default().entry(folded(name)).or_insert(index);
        }
        Self(by_length)
    }

    /// Who has just this name.
    fn called(&self, name: &str) -> Option<usize> {
        let name = folded(name);
        self.0.values().filter_map(|names| names.get(&name)).min().copied()
    }

    /// Who has the longest name that this text begins with.
    fn beginning(&self, text: &str) -> Option<usize> {
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

fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// How many `@` are looked at: a message addresses people, and the work stays bounded.
const MAX_MENTIONS: usize = 200;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// The places of every `@` that may open a mention.
fn ats(text: &str) -> Vec<usize> {
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
                // An opening without its closing is plain text, not code to the end of the message.
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

/// Where the last row of so many backticks begins. Looked up once: to search the rest of a long text for the closing of
/// each opening takes as long as the text squared.
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
    fn a_mention_is_found_whatever_its_case() {
        check("hello @BOB, and @zoë!", &["bob", "Zoë"]);
    }

    #[test]
    fn the_longest_name_wins() {
        check("@ann lee?", &["Ann Lee"]);
        check("@ann leeway", &["ann"]);
        check("@ann, @Ann Lee", &["ann", "Ann Lee"]);
    }

    #[test]
    fn a_person_is_also_found_by_the_name_they_sign_in_with() {
        check("@ann.lee, are you there?", &["Ann Lee"]);
    }

    #[test]
    fn neither_addresses_nor_longer_words_nor_code_mention_anyone() {
        check("mail@bob.example", &[]);
        check("@bobby @bob_ @bob-2", &[]);
        check("`@bob` and ```\n@ann\n```", &[]);
        check("a ` alone, @bob", &["bob"]);
        check("a ` alone, ```@ann``` and @bob", &["bob"]);
        check("``@ann ` still`` and @bob", &["bob"]);
        check("@", &[]);
    }

    #[test]
    fn given_names_and_ids_count_and_unknown_ones_do_not() {
        let members = [member("ann"), member("bob")];
        let found = resolve("", &["id-ann".into(), "@Bob".into(), "ghost".into()], &members);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn openings_without_a_closing_cost_no_more_than_their_length() {
        // Each row is shorter than the one before, so none of them closes another: to look for each closing anew would
        // read five hundred million characters.
        let rows = (1..1400).rev().map(|length| "`".repeat(length));
        check(&format!("@bob {}", rows.collect::<Vec<_>>().join(" ")), &["bob"]);
    }

    #[test]
    fn names_that_are_alike_cost_no_more_than_others() {
        // A thousand names with one beginning, addressed two hundred times by it: looked at one by one, that is twenty
        // million characters to compare for one message.
        let alike = |number: usize| format!("{}{number:04}", "a".repeat(90));
        let members: Vec<_> = (0..1000).map(|number| member(&alike(number))).collect();
        let text = format!("@{} ", alike(9999)).repeat(199) + &format!("@{}", alike(7).to_uppercase());
        let found = resolve(&text, &[alike(3).into()], &members);
        assert_eq!(found.iter().map(|m| m.name.to_string()).collect::<Vec<_>>(), [alike(3), alike(7)]);
    }

    #[test]
    fn of_two_with_one_name_the_first_is_meant() {
        let members = [member("Ann"), member("bob"), Member { handle: "other".into(), ..member("ANN") }];
        for (text, given) in [("@ann", None), ("", Some("aNN".into()))] {
            let found = resolve(text, given.as_slice(), &members);
            assert_eq!(found.iter().map(|m| &*m.name).collect::<Vec<_>>(), ["Ann"]);
        }
    }
}
