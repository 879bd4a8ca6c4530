//! Runs the whole benchmark at small scale against a fake hub: processes, scenarios, table, JSON, exit code.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

#[test]
fn every_scenario_runs_and_is_reported_in_table_and_json() {
    let folder = Folder::new("all");
    let file = folder.0.join("result.json");
    let output = bench(&folder, &["--json", file.to_str().unwrap()]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let measures = result["measures"].as_array().unwrap();
    let names: Vec<&str> = measures.iter().map(|measure| measure["name"].as_str().unwrap()).collect();
    for scenario in ["fan-out-4", "fan-out-10", "publish", "idle", "connect"] {
        assert!(
            names.iter().any(|name| name.starts_with(&format!("{scenario}:"))),
            "{scenario} is not in {names:?}"
        );
        assert!(table.contains(scenario), "{scenario} is not in the table:\n{table}");
    }
    for measure in measures {
        let name = measure["name"].as_str().unwrap();
        for side in ["hub", "reference"] {
            assert_eq!(
                measure[side]["rounds"].as_array().unwrap().len(),
                2,
                "rounds of the {side} in {name}"
            );
        }
        // The memory of a few connections may be below a page and the CPU time below a tick, but rates are
        // never zero.
        if name.contains("/s") {
            assert!(measure["ratio"].as_f64().unwrap() > 0.0, "{measure}");
        }
    }
}

#[test]
fn only_a_strict_run_fails_when_a_threshold_is_missed() {
    // Whether the fake hub is faster than SQLite is open, but the exit code of a strict run must match its
    // table.
    let folder = Folder::new("strict");
    let output = bench(&folder, &["--strict", "--only", "publish"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("publish:"), "{table}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.success(), !table.contains("BELOW"), "{table}");
}

#[test]
fn a_hub_that_does_not_start_is_named_in_the_error() {
    let folder = Folder::new("missing");
    let folder = folder.0.to_str().unwrap();
    let output = run(&["bench-run", "--small", "--only", "idle", "--hub", "no-such-hub", "--dir", folder]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("starting no-such-hub"), "{errors}");
}

fn bench(folder: &Folder, options: &[&str]) -> Output {
    let mut arguments = vec!["bench-run", "--stand-in", "--small", "--rounds", "2", "--seconds", "0.3"];
    arguments.extend(["--dir", folder.0.to_str().unwrap()]);
    arguments.extend(options);
    run(&arguments)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap()
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("parlor-xtask-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
