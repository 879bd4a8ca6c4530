//! Builds and locates the helper programs of this crate for tests of other crates. Cargo builds them only for
//! the tests of this crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Returns the path of a program in `src/bin`. Builds it if the existing binary is older than its source.
pub fn program(name: &str) -> PathBuf {
    // Serialises the tests of one process, so that they do not build the program at the same time.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _guard = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let test = std::env::current_exe().expect("the path of the test executable is known");
    let profile = test
        .parent()
        .and_then(Path::parent)
        .expect("test executables are in a subfolder of the profile folder");
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
