//! Two whole hubs, one on each store, driven by the same random commands of the same random callers:
//! every outcome, every piece of news, and in the end everything that can be read must be the same.

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
mod services;
mod tasks;
mod turns;
mod world;

use asks::{Step, steps};
use coverage::Coverage;
use parlor_model::{Caller, Command};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestError, TestRunner};
use run::Run;
use std::sync::Mutex;

/// Unless `PROPTEST_CASES` asks for another number.
const CASES: u32 = 128;
const MOST_ROUNDS: u32 = 8;

/// The seeds of runs that failed once; they are tried first.
const FAILED: FileFailurePersistence = FileFailurePersistence::Direct("tests/suite/twins/failed-seeds");

#[test]
fn every_store_answers_like_the_one_in_memory() {
    let coverage = Mutex::new(Coverage::default());
    let mut config = Config { failure_persistence: Some(Box::new(FAILED)), ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    // Chance may leave something rare out: then some more are played, and in the end it must have come about.
    let rounds = if config.cases >= CASES { MOST_ROUNDS } else { 1 };
    let players = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8) as u32);
    config.cases = config.cases.div_ceil(players);
    for _ in 0..rounds {
        std::thread::scope(|threads| {
            let playing: Vec<_> = (0..players).map(|_| threads.spawn(|| play(&config, &coverage))).collect();
            for player in playing {
                player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        if coverage.lock().unwrap().missed().is_empty() {
            return;
        }
    }
    // Fewer runs than usual cannot reach everything.
    if rounds > 1 {
        coverage.lock().unwrap().check();
    }
}

fn play(config: &Config, coverage: &Mutex<Coverage>) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let result = TestRunner::new(config.clone()).run(&steps(), |steps| {
        runtime.block_on(async {
            let mut run = Run::open();
            let outcome = whole(&mut run, steps).await;
            coverage.lock().unwrap().add(&run.coverage);
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
    let take = Command::TakeReleased { limit: 1000 };
    run.act(vec![(Caller::OPERATOR, take)]).await?;
    run.compare().await
}
