//! Decides which side of a configuration changed: the file, the store, or both.

/// The side that has the newer configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newer {
    /// The file and the store have the same configuration.
    Neither,
    Disk,
    Store,
}

/// Compares a file and a stored configuration with the one that both had last. If both have changed, the file wins: a change
/// of the store is written within milliseconds, so the file was changed after it, or while the hub was stopped.
pub fn newer(disk: &str, store: &str, last: Option<&str>) -> Newer {
    if disk == store {
        Newer::Neither
    } else if last == Some(disk) {
        Newer::Store
    } else {
        Newer::Disk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_that_changed_is_newer_and_the_file_if_both_did() {
        assert_eq!(newer("a", "a", None), Newer::Neither);
        assert_eq!(newer("a", "a", Some("b")), Newer::Neither);
        assert_eq!(newer("a", "b", Some("a")), Newer::Store);
        assert_eq!(newer("a", "b", Some("b")), Newer::Disk);
        assert_eq!(newer("a", "b", Some("c")), Newer::Disk);
        assert_eq!(newer("a", "b", None), Newer::Disk);
    }
}
