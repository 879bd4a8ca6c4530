//! Subscription patterns of a busy hub: many patterns of several shapes, none of which matches the routed
//! messages.

/// Returns the path to which listener `number` subscribes. No generated pattern matches it.
pub fn channel(number: usize) -> String {
    format!("slack/bench/#channel-{number}")
}

/// Returns the patterns, which are the same in every run: most are plain, some have wildcards at the end, at
/// the start or inside.
pub fn patterns(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| match number % 20 {
        // 14 of 20 patterns share a prefix with the routed paths.
        0..14 => format!("slack/team-{}/#channel-{number}", number / 100),
        14 | 15 => format!("slack/team-{number}/*"),
        16 | 17 => format!("email/inbox-{number}/**"),
        18 => format!("*/*/#topic-{number}"),
        _ => format!("github/org-{number}/**/release"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn patterns_differ_and_some_have_wildcards() {
        let all: HashSet<String> = patterns(10_000).collect();
        assert_eq!(all.len(), 10_000);
        assert_eq!(all.iter().filter(|pattern| pattern.contains('*')).count(), 3_000);
        assert!((0..100).all(|number| !all.contains(&channel(number))));
    }
}
