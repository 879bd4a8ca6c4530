//! Checks the layering of the crates: no crate may have a forbidden dependency.
//!
//! Owns: the table of forbidden dependencies. `seed`, `testkit` and `xtask` are outside the layers: they may
//! use every crate, and only tests may use them.

use crate::{cargo, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crate on the left must not depend on those on the right: neither directly, nor transitively, nor in
/// its tests.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "parlor-model",
        &["parlor-engine", "parlor-wire", "parlor-backends", "parlor-server", "parlor-agents", "parlor"],
    ),
    ("parlor-engine", &["parlor-wire", "parlor-backends", "parlor-server", "parlor-agents", "parlor"]),
    ("parlor-wire", &["parlor-engine", "parlor-backends", "parlor-server", "parlor-agents", "parlor"]),
    ("parlor-backends", &["parlor-wire", "parlor-server", "parlor-agents", "parlor"]),
    ("parlor-server", &["parlor-backends", "parlor-agents", "parlor"]),
    ("parlor-agents", &["parlor-engine", "parlor-backends", "parlor-server", "parlor"]),
    (
        "parlor-safe-files",
        &[
            "parlor-model",
            "parlor-engine",
            "parlor-wire",
            "parlor-backends",
            "parlor-server",
            "parlor-agents",
            "parlor-folders",
            "parlor",
        ],
    ),
    ("parlor-folders", &["parlor-backends", "parlor-server", "parlor-agents", "parlor-chatmd", "parlor"]),
    ("parlor-chatmd", &["parlor-engine", "parlor-backends", "parlor-server", "parlor-agents", "parlor"]),
    (
        "parlor-outbound",
        &[
            "parlor-model",
            "parlor-engine",
            "parlor-wire",
            "parlor-backends",
            "parlor-server",
            "parlor-agents",
            "parlor",
        ],
    ),
    (
        "parlor-web-assets",
        &["parlor-model", "parlor-engine", "parlor-wire", "parlor-backends", "parlor-agents"],
    ),
];

const OUTSIDE_THE_LAYERS: &[&str] = &["parlor-seed", "parlor-testkit", "xtask"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    from: String,
    to: String,
    only_in_tests: bool,
}

/// Fails with one line for each forbidden dependency of this workspace.
pub fn check() -> Result<()> {
    let violations = violations(&edges_of_workspace()?);
    if !violations.is_empty() {
        bail!("forbidden dependencies:\n  {}", violations.join("\n  "));
    }
    println!("No crate has a forbidden dependency.");
    Ok(())
}

fn edges_of_workspace() -> Result<Vec<Edge>> {
    edges(&metadata()?)
}

fn metadata() -> Result<Value> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .context("running `cargo metadata`")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("reading the output of `cargo metadata`")
}

fn edges(metadata: &Value) -> Result<Vec<Edge>> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let workspace: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut edges = Vec::new();
    for package in packages {
        let from = package["name"].as_str().context("a package without a name")?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().context("a dependency without a name")?;
            if workspace.contains(to) {
                let only_in_tests = dependency["kind"] == "dev";
                edges.push(Edge { from: from.into(), to: to.into(), only_in_tests });
            }
        }
    }
    Ok(edges)
}

fn violations(edges: &[Edge]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for edge in edges {
        let outside = |name: &str| OUTSIDE_THE_LAYERS.contains(&name);
        if outside(&edge.to) && !edge.only_in_tests && !outside(&edge.from) {
            found.insert(format!("{} → {}: only tests may use it", edge.from, edge.to));
        }
    }
    for (from, forbidden) in FORBIDDEN {
        for (reached, path) in reachable(from, edges) {
            if forbidden.contains(&reached.as_str()) {
                found.insert(path.join(" → "));
            }
        }
    }
    found.into_iter().collect()
}

/// Returns every direct and transitive dependency of `from`, with the path to it. Test dependencies count
/// only for `from` itself, because those of its dependencies are not built.
fn reachable(from: &str, edges: &[Edge]) -> BTreeMap<String, Vec<String>> {
    let mut paths: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut open = vec![vec![from.to_string()]];
    while let Some(path) = open.pop() {
        let last = path.last().expect("a path contains at least its start");
        for edge in edges.iter().filter(|edge| edge.from == *last) {
            let counts = !edge.only_in_tests || path.len() == 1;
            if !counts || OUTSIDE_THE_LAYERS.contains(&edge.to.as_str()) || paths.contains_key(&edge.to) {
                continue;
            }
            let mut longer = path.clone();
            longer.push(edge.to.clone());
            paths.insert(edge.to.clone(), longer.clone());
            open.push(longer);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_has_no_forbidden_dependency() {
        assert_eq!(violations(&edges_of_workspace().unwrap()), Vec::<String>::new());
    }

    #[test]
    fn every_crate_of_the_table_exists() {
        let metadata = metadata().unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let workspace: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
        for (from, forbidden) in FORBIDDEN {
            for name in forbidden.iter().chain([from]).chain(OUTSIDE_THE_LAYERS) {
                assert!(workspace.contains(name), "`{name}` in the table is not a crate of the workspace");
            }
        }
    }

    #[test]
    fn allowed_dependencies_are_accepted() {
        check(&["parlor-engine → parlor-model"], &[]);
        check(&["parlor-backends → parlor-engine", "parlor-engine → parlor-model"], &[]);
        check(&["parlor-server → parlor-wire", "parlor-server → parlor-engine"], &[]);
        check(&["parlor-agents → parlor-wire", "parlor-agents → parlor-model"], &[]);
        check(&["parlor-chatmd → parlor-wire", "parlor-chatmd → parlor-model"], &[]);
        check(&["parlor-folders → parlor-engine", "parlor-folders → parlor-safe-files"], &[]);
        check(&["parlor → parlor-backends", "parlor → parlor-server", "parlor → parlor-agents"], &[]);
    }

    #[test]
    fn forbidden_dependencies_are_found() {
        for forbidden in [
            "parlor-engine → parlor-wire",
            "parlor-engine → parlor-backends",
            "parlor-wire → parlor-engine",
            "parlor-wire → parlor-server",
            "parlor-server → parlor-backends",
            "parlor-backends → parlor-server",
            "parlor-backends → parlor-wire",
            "parlor-agents → parlor-engine",
            "parlor-agents → parlor-server",
            "parlor-server → parlor-agents",
            "parlor-folders → parlor-server",
            "parlor-safe-files → parlor-model",
            "parlor-chatmd → parlor-engine",
            "parlor-chatmd → parlor-server",
            "parlor-model → parlor-engine",
            "parlor-model → parlor-wire",
        ] {
            check(&[forbidden], &[forbidden]);
        }
    }

    #[test]
    fn a_test_dependency_counts() {
        check(&["parlor-wire ⇢ parlor-engine"], &["parlor-wire → parlor-engine"]);
    }

    #[test]
    fn a_transitive_dependency_counts_unless_it_is_a_test_dependency_of_another_crate() {
        check(
            &["parlor-server → parlor-between", "parlor-between → parlor-backends"],
            &["parlor-server → parlor-between → parlor-backends"],
        );
        check(&["parlor-server → parlor-between", "parlor-between ⇢ parlor-backends"], &[]);
    }

    #[test]
    fn the_test_kit_may_use_everything_and_only_tests_may_use_it() {
        check(&["parlor-testkit → parlor-wire", "parlor-engine ⇢ parlor-testkit"], &[]);
        check(
            &["parlor-engine → parlor-testkit"],
            &["parlor-engine → parlor-testkit: only tests may use it"],
        );
    }

    /// In `graph`, `→` is a dependency and `⇢` a test dependency.
    #[track_caller]
    fn check(graph: &[&str], expected: &[&str]) {
        let edges: Vec<Edge> = graph
            .iter()
            .map(|line| {
                let only_in_tests = line.contains('⇢');
                let (from, to) = line.split_once(['→', '⇢']).unwrap();
                Edge { from: from.trim().into(), to: to.trim().into(), only_in_tests }
            })
            .collect();
        assert_eq!(violations(&edges), expected);
    }
}
