//! Suggests a valid setting name for a misspelt one.

/// Minimum similarity of a suggestion, from 0 to 1. Less similar names would confuse more than help.
const MIN_SIMILARITY: f64 = 0.75;

/// Returns the known name that is most similar to the given one, or `None` if no name is similar enough.
pub fn nearest<'a>(given: &str, known: &'a [String]) -> Option<&'a str> {
    // The common prefix of all variables would make every name similar, so it is ignored.
    let core = |name: &str| {
        let name = name.to_ascii_lowercase().replace('-', "_");
        name.strip_prefix("parlor_").map_or(name.clone(), str::to_owned)
    };
    let given = core(given);
    known
        .iter()
        .map(|name| {
            (
                name,
                strsim::normalized_damerau_levenshtein(&given, &core(name))
                    .max(shared_words(&given, &core(name))),
            )
        })
        .filter(|(_, similarity)| *similarity >= MIN_SIMILARITY)
        .max_by(|(_, left), (_, right)| left.total_cmp(right))
        .map(|(name, _)| name.as_str())
}

/// Returns the share of words that both names have in common, so that `ws_max_connections` matches
/// `max_ws_connections_per_user`. Fewer than two shared words count as none.
fn shared_words(left: &str, right: &str) -> f64 {
    let words =
        |name: &str| name.split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (left, right) = (words(left), words(right));
    let shared = left.iter().filter(|word| right.contains(word)).count();
    if shared < 2 {
        return 0.0;
    }
    2.0 * shared as f64 / (left.len() + right.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_finds_the_valid_key() {
        check("lisen", Some("listen"));
        check("Listen", Some("listen"));
        check("admin-password", Some("admin_password"));
        check("acces_token_ttl", Some("access_token_ttl"));
        check("token_ttl_access", Some("access_token_ttl"));
    }

    #[test]
    fn a_variable_is_compared_without_the_common_prefix() {
        let known = ["PARLOR_LISTEN".to_owned(), "PARLOR_DATA".to_owned()];
        assert_eq!(nearest("PARLOR_LISTN", &known), Some("PARLOR_LISTEN"));
        assert_eq!(nearest("PARLOR_XYZ", &known), None);
    }

    #[test]
    fn a_name_without_a_similar_one_has_no_suggestion() {
        check("colour", None);
        check("", None);
    }

    #[track_caller]
    fn check(given: &str, expected: Option<&str>) {
        let known =
            ["listen", "data", "admin_user", "admin_password", "access_token_ttl", "refresh_token_ttl"];
        assert_eq!(nearest(given, &known.map(str::to_owned)), expected);
    }
}
