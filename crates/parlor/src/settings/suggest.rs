//! Finds the name a person probably meant.

/// Below this likeness a suggestion confuses more than it helps.
const LIKE_ENOUGH: f64 = 0.75;

/// Gives the known name most like the given one, or none if nothing is alike.
pub fn nearest<'a>(given: &str, known: &'a [String]) -> Option<&'a str> {
    // The prefix all variables share would make everything look alike.
    let core = |name: &str| {
        let name = name.to_ascii_lowercase().replace('-', "_");
        name.strip_prefix("parlor_").map_or(name.clone(), str::to_owned)
    };
    let wanted = core(given);
    known
        .iter()
        .map(|name| {
            (
                name,
                strsim::normalized_damerau_levenshtein(&wanted, &core(name))
                    .max(shared_words(&wanted, &core(name))),
            )
        })
        .filter(|(_, likeness)| *likeness >= LIKE_ENOUGH)
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .map(|(name, _)| name.as_str())
}

/// How much of the words both have in common, so that `ws_max_connections` finds its way too.
fn shared_words(one: &str, other: &str) -> f64 {
    let words =
        |name: &str| name.split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (one, other) = (words(one), words(other));
    let shared = one.iter().filter(|word| other.contains(word)).count();
    if shared < 2 {
        return 0.0;
    }
    2.0 * shared as f64 / (one.len() + other.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_key() {
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
    fn nothing_alike_gives_no_suggestion() {
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
