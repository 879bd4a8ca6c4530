//! Two whole hubs, one on each store, driven by the same commands of the same callers: every outcome, every piece of
//! news, and in the end everything that can be read must be the same.
//!
//! A script reaches every kind of command and every notable outcome for certain. Random commands explore what nobody
//! thought of; they are compared, and nothing is demanded of what they reach.

mod agents;
mod approvals;
mod asks;
mod coverage;
mod dice;
mod fitting;
mod invariants;
mod missions;
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
use parlor_model::{Caller, Command};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use run::Run;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

/// As many random histories as usual; `PARLOR_TEST_ROUNDS` multiplies them.
const HISTORIES: u32 = 6;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_command_and_every_notable_outcome_is_the_same_on_every_store() {
    let mut run = Run::open();
    run.strangers_try = true;
    let outcome = scripted(&mut run).await;
    let coverage = std::mem::take(&mut run.coverage);
    let trace = run.close().await;
    outcome.unwrap_or_else(|error| panic!("{error}\nafter:\n{trace}"));
    coverage.check();
}

async fn scripted(run: &mut Run) -> Result<(), TestCaseError> {
    let cast = prelude::play(run).await?;
    script::play(run, &cast).await?;
    run.compare().await?;
    run.take(Step::Restart).await
}

#[tokio::test(flavor = "multi_thread")]
async fn random_commands_are_of_every_kind() {
    let mut run = Run::open();
    let outcome = one_of_every_kind(&mut run).await;
    let trace = run.close().await;
    let kinds = outcome.unwrap_or_else(|error| panic!("{error}\nafter:\n{trace}"));
    assert_eq!(kinds.len(), coverage::KINDS, "{kinds:?}");
}

async fn one_of_every_kind(run: &mut Run) -> Result<BTreeSet<&'static str>, TestCaseError> {
    prelude::play(run).await?;
    let mut kinds = BTreeSet::new();
    for ask in one_of_each(|number| std::array::from_fn(|at| (number * 31 + at * 7) as u8)) {
        let asked = run.resolve(&ask);
        kinds.insert(coverage::name(&asked.1));
        run.act(vec![asked]).await?;
    }
    run.compare().await?;
    Ok(kinds)
}

#[test]
fn every_store_answers_like_the_one_in_memory() {
    let (seed, histories, next) = (parlor_seed::seed(), parlor_seed::cases(HISTORIES), AtomicU32::new(0));
    let players = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
    // Each history has a seed of its own: it is the same one however many play at once.
    let play_some = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= histories {
                return;
            }
            play(&runtime, seed.wrapping_add(number.into()));
        }
    };
    std::thread::scope(|threads| {
        let playing: Vec<_> = (0..players).map(|_| threads.spawn(play_some)).collect();
        for player in playing {
            player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

fn play(runtime: &tokio::runtime::Runtime, seed: u64) {
    let rng_seed = RngSeed::Fixed(seed);
    let config = Config { rng_seed, cases: 1, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&steps(), |steps| {
        runtime.block_on(async {
            let mut run = Run::open();
            let outcome = whole(&mut run, steps).await;
            let trace = run.close().await;
            outcome.map_err(|error| TestCaseError::fail(format!("{error}\nafter:\n{trace}")))
        })
    });
    if let Err(TestError::Fail(reason, _) | TestError::Abort(reason)) = result {
        panic!("{reason}");
    }
}

async fn whole(run: &mut Run, steps: Vec<Step>) -> Result<(), TestCaseError> {
    prelude::play(run).await?;
    for step in steps {
        run.take(step).await?;
    }
    let take = Command::TakeUnreferencedBlobs { limit: 1000 };
    run.act(vec![(Caller::OPERATOR, take)]).await?;
    run.compare().await
}
