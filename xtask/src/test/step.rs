//! The steps of `cargo xtask test`, their order, and what each of them does.

use super::nextest;
use super::outcome::Ran;
use crate::{cargo, layers, packages, root, web};
use anyhow::{Result, bail};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Packages,
    Layering,
    Format,
    WebLints,
    /// Compiles every test, and lints every crate of the workspace on the way: see [`nextest::build`].
    Build,
    Unit,
    InProcess,
    Web,
    Process,
    Flows,
}

impl Step {
    /// Cheap steps come first, so that a mistake is found early.
    pub const ALL: [Self; 10] = [
        Self::Packages,
        Self::Layering,
        Self::Format,
        Self::WebLints,
        Self::Build,
        Self::Unit,
        Self::InProcess,
        Self::Web,
        Self::Process,
        Self::Flows,
    ];

    /// What a developer runs before each commit: installs nothing, starts no processes and no browser.
    pub const QUICK: [Self; 7] =
        [Self::Layering, Self::Format, Self::WebLints, Self::Build, Self::Unit, Self::InProcess, Self::Web];

    /// The steps that run tests. When one fails, the run goes on; when any other step fails, the run ends.
    pub const TESTS: [Self; 5] = [Self::Unit, Self::InProcess, Self::Web, Self::Process, Self::Flows];

    pub fn name(self) -> &'static str {
        match self {
            Self::Packages => "packages",
            Self::Layering => "layering",
            Self::Format => "format",
            Self::WebLints => "web-lints",
            Self::Build => "build",
            Self::Unit => "unit",
            Self::InProcess => "in-process",
            Self::Web => "web",
            Self::Process => "process",
            Self::Flows => "flows",
        }
    }

    pub fn is_test(self) -> bool {
        Self::TESTS.contains(&self)
    }

    /// Whether a test of this step can have one of these names. Names of flows are sentences, so `_` and `::` stand only in
    /// names of Rust tests, and no browser need be started to find that out.
    pub fn may_have(self, names: &[String]) -> bool {
        let is_rust = |name: &String| name.contains('_') || name.contains("::");
        !matches!(self, Self::Web | Self::Flows) || names.is_empty() || !names.iter().all(is_rust)
    }

    /// Runs this step; a test step runs only the tests whose name contains one of `names`, or all if there are none.
    pub fn perform(self, names: &[String]) -> Result<Ran> {
        match self {
            Self::Packages => {
                packages::require(packages::FOR_TESTS)?;
                nextest::install_if_missing()?;
            }
            Self::Layering => layers::check()?,
            Self::Format => format()?,
            Self::WebLints => web::lints()?,
            Self::Build => nextest::build()?,
            Self::Web => return web::unit_tests(names),
            Self::Flows => return web::flows(names),
            Self::Unit => return nextest::run(UNIT, names),
            Self::InProcess => {
                return nextest::run(&format!("not ({UNIT}) and {}", without_processes()), names);
            }
            Self::Process => return nextest::run(PROCESS, names),
        }
        Ok(Ran::default())
    }
}

/// Tests inside the crates.
const UNIT: &str = "kind(lib) or kind(bin)";

/// Tests whose subject is a process: a hub that crashes, an agent, the command line, a file system of FUSE. Each other
/// integration test, also a future one, runs with the in-process tests.
const PROCESS: &str = "kind(test) and \
    ((package(parlor) and test(/^process::/)) or binary(kinds) or package(parlor-testkit) or package(xtask))";

/// The filter for unit tests and in-process tests together.
pub fn without_processes() -> String {
    format!("not ({PROCESS})")
}

fn format() -> Result<()> {
    let status = Command::new(cargo()).args(["fmt", "--all", "--check"]).current_dir(root()).status()?;
    if !status.success() {
        bail!("`cargo fmt --all` would change the files above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_run_has_every_test_step_behind_the_build() {
        let build = position(Step::Build);
        for step in Step::TESTS {
            assert!(position(step) > build, "{step:?} needs what is built");
        }
        let others = Step::ALL.into_iter().filter(|step| !step.is_test());
        assert_eq!(others.map(position).max(), Some(build), "what ends the run comes before the tests");
    }

    #[test]
    fn the_quick_run_is_a_part_of_the_whole_run_in_its_order() {
        let places: Vec<usize> = Step::QUICK.into_iter().map(position).collect();
        assert!(places.is_sorted(), "{places:?}");
        for slow in [Step::Packages, Step::Process, Step::Flows] {
            assert!(!Step::QUICK.contains(&slow), "{slow:?}");
        }
    }

    fn position(step: Step) -> usize {
        Step::ALL.into_iter().position(|other| other == step).unwrap()
    }
}
