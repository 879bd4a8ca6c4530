//! What a busy hub listens to: many patterns of several shapes, hardly any of which match what is routed.

/// Where listener `number` hears what is routed. No other pattern matches it.
pub fn channel(number: usize) -> String {
    format!("slack/bench/#channel-{number}")
}

/// The same patterns in every run: mostly plain, some with wildcards at the end, in front, and inside.
pub fn patterns(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| match number % 20 {
        // Shares its beginning with what is routed.
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
