//! The seed of every random test, and how much each of them explores.
//!
//! Owns: `PARLOR_TEST_SEED` and `PARLOR_TEST_ROUNDS`. Without a seed, each test process chooses one. [`seed`] prints it, and
//! the test harness shows what a failed test printed, so a failure can be repeated with the same seed.
//! A crate of its own because the unit tests of small crates need it, and `parlor-testkit` is slow to compile.

mod rng;

pub use rng::Rng;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// The seed of random tests: a number, decimal or hexadecimal with `0x`.
pub const SEED: &str = "PARLOR_TEST_SEED";

/// How many times the usual number of cases random tests try; 1 if it is not set.
pub const ROUNDS: &str = "PARLOR_TEST_ROUNDS";

/// The seed of this test process, which it prints: that of `PARLOR_TEST_SEED`, or a fresh one.
pub fn seed() -> u64 {
    static CHOSEN: OnceLock<u64> = OnceLock::new();
    let seed = *CHOSEN.get_or_init(|| variable(SEED).unwrap_or_else(fresh));
    println!("to repeat this: {SEED}={seed}");
    seed
}

/// A random generator that starts from [`seed`].
pub fn rng() -> Rng {
    Rng::new(seed())
}

/// How many cases a random test tries: its usual number, as many times as `PARLOR_TEST_ROUNDS` says.
pub fn cases(usual: u32) -> u32 {
    let rounds = variable(ROUNDS).map_or(1, |rounds| u32::try_from(rounds).unwrap_or(u32::MAX));
    usual.saturating_mul(rounds)
}

/// What `proptest!` and `TestRunner` are configured with: [`seed`] as the seed, and the usual 256 [`cases`].
#[cfg(feature = "proptest")]
pub fn proptest_config() -> proptest::test_runner::Config {
    proptest_config_with(256)
}

/// The same with another usual number of cases.
#[cfg(feature = "proptest")]
pub fn proptest_config_with(usual_cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    Config {
        rng_seed: RngSeed::Fixed(seed()),
        cases: cases(usual_cases),
        // The printed seed repeats a failure; a test writes nothing into the source tree.
        failure_persistence: None,
        ..Config::default()
    }
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(parse(&value).unwrap_or_else(|| panic!("{name}={value} is no number")))
}

fn parse(value: &str) -> Option<u64> {
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// The standard library seeds its hash maps from the operating system's random numbers.
fn fresh() -> u64 {
    RandomState::new().hash_one("a seed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_decimal_or_hexadecimal() {
        for (value, expected) in [
            ("7", Some(7)),
            ("0xff", Some(255)),
            ("18446744073709551615", Some(u64::MAX)),
            ("0xffffffffffffffff", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("ff", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(parse(value), expected, "{value}");
        }
    }

    #[test]
    fn a_process_has_one_seed() {
        assert_eq!(seed(), seed());
        assert_eq!(rng().draw(), rng().draw());
    }

    #[test]
    fn fresh_seeds_differ() {
        assert_ne!(fresh(), fresh());
    }

    #[cfg(feature = "proptest")]
    #[test]
    fn proptest_draws_the_same_cases_from_the_same_seed() {
        use proptest::prelude::*;
        use proptest::strategy::ValueTree;
        use proptest::test_runner::TestRunner;
        let drawn = || {
            let mut runner = TestRunner::new(proptest_config());
            let value = any::<[u64; 4]>().new_tree(&mut runner).expect("any value is valid");
            value.current()
        };
        assert_eq!(drawn(), drawn());
    }
}
