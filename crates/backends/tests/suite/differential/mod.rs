//! Differential tests: a hub on each store executes the same commands of the same callers. Every result,
//! every published event and finally everything readable must be equal.
//!
//! A script covers every kind of command and every notable outcome. Random commands explore further
//! histories; their results are compared, but they need not reach any particular outcome.

mod agents;
mod approvals;
mod asks;
mod automatic;
mod coverage;
mod dice;
mod fitting;
mod invariants;
mod missions;
mod origins;
mod people;
mod picture;
mod prelude;
mod run;
mod script;
mod services;
mod tasks;
mod turns;
mod world;

use asks::{Step, one_of_each, steps};
use parlor_engine::commands::AnyCommand;
use parlor_model::Caller;
use parlor_model::command::TakeUnreferencedBlobs;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use run::Run;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// Default number of random histories, multiplied by `PARLOR_TEST_ROUNDS`.
const HISTORIES: u32 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn every_command_kind_and_notable_outcome_is_equal_on_every_store() {
    let mut run = Run::open();
    run.anonymous_tries_first = true;
    let outcome = scripted(&mut run).await;
    let coverage = std::mem::take(&mut run.coverage);
    let trace = run.close().await;
    outcome.unwrap_or_else(|error| panic!("{error}\nafter:\n{trace}"));
    coverage.check();
}

async fn scripted(run: &mut Run) -> Result<(), TestCaseError> {
    let users = prelude::set_up(run).await?;
    script::execute(run, &users).await?;
    run.compare().await?;
    run.take(Step::Restart).await
}

#[tokio::test(flavor = "multi_thread")]
async fn random_commands_cover_every_kind() {
    let mut run = Run::open();
    let outcome = one_of_every_kind(&mut run).await;
    let trace = run.close().await;
    let kinds = outcome.unwrap_or_else(|error| panic!("{error}\nafter:\n{trace}"));
    assert_eq!(kinds.len(), AnyCommand::NAMES.len(), "{kinds:?}");
}

async fn one_of_every_kind(run: &mut Run) -> Result<BTreeSet<&'static str>, TestCaseError> {
    prelude::set_up(run).await?;
    let mut kinds = BTreeSet::new();
    for command in one_of_each(|number| std::array::from_fn(|at| (number * 31 + at * 7) as u8)) {
        let resolved = run.resolve(&command);
        kinds.insert(resolved.1.name());
        run.act(vec![resolved]).await?;
    }
    run.compare().await?;
    Ok(kinds)
}

#[test]
fn every_store_equals_the_in_memory_store() {
    let (seed, histories, next) = (parlor_seed::seed(), parlor_seed::cases(HISTORIES), AtomicU32::new(0));
    let thread_count = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
    // Each history has its own seed, so it does not depend on the number of threads.
    let run_histories = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= histories {
                return;
            }
            run_history(&runtime, seed.wrapping_add(number.into()));
        }
    };
    std::thread::scope(|threads| {
        let handles: Vec<_> = (0..thread_count).map(|_| threads.spawn(run_histories)).collect();
        for handle in handles {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

fn run_history(runtime: &tokio::runtime::Runtime, seed: u64) {
    let rng_seed = RngSeed::Fixed(seed);
    let config = Config { rng_seed, cases: 1, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(async {
            let mut run = Run::open();
            let outcome = random_history(&mut run, steps).await;
            let trace = run.close().await;
            outcome.map_err(|error| TestCaseError::fail(format!("{error}\nafter:\n{trace}")))
        })
    });
    if let Err(TestError::Fail(reason, _) | TestError::Abort(reason)) = result {
        panic!("{reason}");
    }
}

async fn random_history(run: &mut Run, steps: Vec<Step>) -> Result<(), TestCaseError> {
    prelude::set_up(run).await?;
    for step in steps {
        run.take(step).await?;
    }
    let take = TakeUnreferencedBlobs { limit: 1000 };
    run.act(vec![(Caller::OPERATOR, take.into())]).await?;
    run.compare().await
}
