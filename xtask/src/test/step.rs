//! The steps of `cargo xtask test` and their order.

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
    /// Compiles every test and lints every crate of the workspace; see [`nextest::build`].
    Build,
    Unit,
    InProcess,
    Web,
    Process,
    Ably,
    Flows,
}

impl Step {
    /// All steps in the order of a full run. Cheap steps come first, to find mistakes early.
    pub const ALL: [Self; 11] = [
        Self::Packages,
        Self::Layering,
        Self::Format,
        Self::WebLints,
        Self::Build,
        Self::Unit,
        Self::InProcess,
        Self::Web,
        Self::Process,
        Self::Ably,
        Self::Flows,
    ];

    /// Steps for each commit: they install nothing and start neither processes nor a browser.
    pub const QUICK: [Self; 7] =
        [Self::Layering, Self::Format, Self::WebLints, Self::Build, Self::Unit, Self::InProcess, Self::Web];

    /// Steps that run tests. The run continues if one of them fails, and ends if any other step fails.
    pub const TESTS: [Self; 6] =
        [Self::Unit, Self::InProcess, Self::Web, Self::Process, Self::Ably, Self::Flows];

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
            Self::Ably => "ably",
            Self::Flows => "flows",
        }
    }

    pub fn is_test(self) -> bool {
        Self::TESTS.contains(&self)
    }

    /// Returns whether this step can have tests with these names. Names of web tests, Ably tests and flows are
    /// sentences, so names with `_` or `::` are Rust tests, for which no browser is started.
    pub fn may_have(self, names: &[String]) -> bool {
        let is_rust = |name: &String| name.contains('_') || name.contains("::");
        !matches!(self, Self::Web | Self::Ably | Self::Flows)
            || names.is_empty()
            || !names.iter().all(is_rust)
    }

    /// Runs this step. A test step runs the tests whose name contains one of `names`, or all if `names` is
    /// empty.
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
            Self::Ably => return web::ably(names),
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

/// Filter for unit tests, which are inside the crates.
const UNIT: &str = "kind(lib) or kind(bin)";

/// Filter for tests of separate processes: hub crashes, agents, the command line, FUSE file systems. All
/// other integration tests run with the in-process tests.
const PROCESS: &str = "kind(test) and \
    ((package(parlor) and test(/^process::/)) or binary(kinds) or package(parlor-testkit) or package(xtask))";

/// Returns the filter for unit tests and in-process tests together.
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
    fn a_full_run_has_every_test_step_after_the_build() {
        let build = position(Step::Build);
        for step in Step::TESTS {
            assert!(position(step) > build, "{step:?} requires the build");
        }
        let others = Step::ALL.into_iter().filter(|step| !step.is_test());
        assert_eq!(
            others.map(position).max(),
            Some(build),
            "steps that can end the run come before the tests"
        );
    }

    #[test]
    fn the_quick_run_is_a_subset_of_the_full_run_in_the_same_order() {
        let positions: Vec<usize> = Step::QUICK.into_iter().map(position).collect();
        assert!(positions.is_sorted(), "{positions:?}");
        for slow in [Step::Packages, Step::Process, Step::Ably, Step::Flows] {
            assert!(!Step::QUICK.contains(&slow), "{slow:?}");
        }
    }

    fn position(step: Step) -> usize {
        Step::ALL.into_iter().position(|other| other == step).unwrap()
    }
}
