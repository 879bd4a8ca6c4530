//! Finds the small programs of this crate for the tests of others, which cargo builds for our own tests only.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// The program of that name in `src/bin`, built if the one that lies there is older than its source.
pub fn program(name: &str) -> PathBuf {
    // Tests of one process would otherwise build it at the same time.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _alone = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let test = std::env::current_exe().expect("a test knows its own file");
    let profile = test.parent().and_then(Path::parent).expect("tests lie in a folder below their profile's");
    let program = profile.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin").join(format!("{name}.rs"));
    let changed = |file: &Path| file.metadata().and_then(|file| file.modified()).ok();
    if changed(&program) < changed(&source) {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--package", "parlor-testkit", "--bin", name])
            .status()
            .expect("cargo can be run");
        assert!(built.success(), "{name} cannot be built");
    }
    program
}
