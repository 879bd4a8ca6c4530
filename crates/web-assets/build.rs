//! Provides the files of the web app: a copy of `PARLOR_WEB_DIST` if it is set, otherwise an npm build of
//! `web/`, and without npm a page with instructions.
//!
//! Cargo runs this script only when a listed input has changed, and `npm ci` runs only when the lock file has
//! changed. Builds without a network therefore work until then.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Inputs of the npm build, relative to `web/`.
const SOURCES: &[&str] =
    &["index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "src", "public"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets this variable for build scripts"));
    let manifest =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets this variable for build scripts"));
    let (dist, web) = (out.join("dist"), manifest.join("../../web"));
    println!("cargo:rerun-if-env-changed=PARLOR_WEB_DIST");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=without-npm.html");
    // Cargo would rerun this script on every build for a file that does not exist.
    for source in SOURCES.iter().map(|name| web.join(name)).filter(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    let _ = fs::remove_dir_all(&dist);
    if let Some(prebuilt) = env::var_os("PARLOR_WEB_DIST").filter(|folder| !folder.is_empty()) {
        let prebuilt = PathBuf::from(prebuilt);
        println!("cargo:rerun-if-changed={}", prebuilt.display());
        assert!(prebuilt.join("index.html").is_file(), "PARLOR_WEB_DIST has no index.html");
        copy(&prebuilt, &dist).expect("PARLOR_WEB_DIST can be copied");
        return;
    }
    match build(&web, &dist) {
        Ok(()) => {}
        Err(Failure::Sources) => panic!("the npm build of web/ failed, see its output above"),
        Err(Failure::Tools(reason)) => {
            println!("cargo:warning=Built without the web app: {reason}.");
            // This file never exists, so that cargo reruns this script and retries on the next build.
            println!("cargo:rerun-if-changed={}", out.join("a-page").display());
            fs::create_dir_all(&dist).expect("OUT_DIR is writable");
            fs::copy(manifest.join("without-npm.html"), dist.join("index.html"))
                .expect("OUT_DIR is writable");
        }
    }
}

enum Failure {
    /// npm is missing or cannot download packages. The hub is built without the web app.
    Tools(&'static str),
    /// The sources in `web/` do not build. Fails the cargo build.
    Sources,
}

fn build(web: &Path, dist: &Path) -> Result<(), Failure> {
    if !npm(web).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Failure::Tools("npm is not installed"));
    }
    let lock = fs::read(web.join("package-lock.json")).map_err(|_| Failure::Sources)?;
    // Kept in `node_modules`, so that deleting the packages also deletes this marker.
    let installed_lock = web.join("node_modules/.fetched-for");
    if fs::read(&installed_lock).ok().as_deref() != Some(&lock) {
        if !run(npm(web).args(["ci", "--no-audit", "--no-fund"])) {
            return Err(Failure::Tools("`npm ci` failed in web/"));
        }
        fs::write(&installed_lock, &lock)
            .map_err(|_| Failure::Tools("web/node_modules cannot be written"))?;
    }
    let built = run(npm(web).args(["run", "build", "--", "--logLevel", "warn", "--outDir"]).arg(dist));
    if built { Ok(()) } else { Err(Failure::Sources) }
}

fn npm(web: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(web);
    command
}

/// Runs a command and returns whether it succeeded. Cargo shows its output if this script fails.
fn run(command: &mut Command) -> bool {
    let Ok(output) = command.output() else { return false };
    println!("{}", String::from_utf8_lossy(&output.stdout));
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    output.status.success()
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
