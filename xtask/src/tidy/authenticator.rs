//! Checks that only the authentication code of the server acts as the caller that may read credentials.

use super::files;
use std::fs;

const NAMES: [&str; 2] = [concat!("Caller::AUTHENTI", "CATOR"), concat!("Principal::Authenti", "cator")];

/// Files that may name the caller: its definition, the engine's predicates, the look-ups, and the permission table.
const ALLOWED: [&str; 7] = [
    "crates/model/src/caller.rs",
    "crates/engine/src/permission.rs",
    "crates/engine/src/read_view.rs",
    "crates/server/src/auth/credentials.rs",
    "crates/server/src/auth/tokens.rs",
    "crates/server/src/ably/tokens.rs",
    "crates/engine/tests/permissions/callers.rs",
];

#[test]
fn only_the_authentication_code_reads_credentials() {
    let mut found = 0;
    for path in files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let text = fs::read_to_string(&path).unwrap();
        if NAMES.iter().any(|name| text.contains(name)) {
            let allowed = ALLOWED.iter().any(|allowed| path.ends_with(allowed));
            assert!(allowed, "{} acts as the authentication code", path.display());
            found += 1;
        }
    }
    assert_eq!(found, ALLOWED.len(), "an entry of the list is no longer needed");
}
