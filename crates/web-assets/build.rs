//! Makes the web page: from `PARLOR_WEB_DIST` if that is set, else with npm from `web/`, else a page that says what to do.
//!
//! Cargo calls this only when something listed below changed; npm fetches only when its lock changed. So a build
//! without a network works as long as nothing did.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// What the page is made of, below `web/`.
const SOURCES: &[&str] =
    &["index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "src", "public"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let (dist, web) = (out.join("dist"), manifest.join("../../web"));
    println!("cargo:rerun-if-env-changed=PARLOR_WEB_DIST");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=without-npm.html");
    // Cargo would call us each time for a file that is not there.
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
        Err(Failure::Sources) => panic!("the web page cannot be built: see above"),
        Err(Failure::Tools(reason)) => {
            println!("cargo:warning=The web page was left out: {reason}.");
            // Never there, so that the next build tries again.
            println!("cargo:rerun-if-changed={}", out.join("a-page").display());
            fs::create_dir_all(&dist).expect("OUT_DIR is ours");
            fs::copy(manifest.join("without-npm.html"), dist.join("index.html")).expect("OUT_DIR is ours");
        }
    }
}

enum Failure {
    /// There is no npm, or it cannot fetch what it needs: everything but the page works all the same.
    Tools(&'static str),
    /// A mistake in `web/`, which must not go unnoticed.
    Sources,
}

fn build(web: &Path, dist: &Path) -> Result<(), Failure> {
    if !npm(web).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Failure::Tools("npm is not installed"));
    }
    let lock = fs::read(web.join("package-lock.json")).map_err(|_| Failure::Sources)?;
    // Beside what was fetched, so that both are removed together.
    let fetched = web.join("node_modules/.fetched-for");
    if fs::read(&fetched).ok().as_deref() != Some(&lock) {
        if !run(npm(web).args(["ci", "--no-audit", "--no-fund"])) {
            return Err(Failure::Tools("`npm ci` failed in web/"));
        }
        fs::write(&fetched, &lock).map_err(|_| Failure::Tools("web/node_modules cannot be written"))?;
    }
    let made = run(npm(web).args(["run", "build", "--", "--logLevel", "warn", "--outDir"]).arg(dist));
    if made { Ok(()) } else { Err(Failure::Sources) }
}

fn npm(web: &Path) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(web);
    command
}

/// What it prints is shown by cargo if this script fails.
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
