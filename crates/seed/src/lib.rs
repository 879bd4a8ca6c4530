//! Seed and number of cases of every random test.
//!
//! Owns: `PARLOR_TEST_SEED` and `PARLOR_TEST_ROUNDS`. Without a seed, each test process chooses one. [`seed`]
//! prints it, and the test harness shows the output of failed tests, so a failure can be repeated with the
//! same seed. It is a separate crate, because the unit tests of small crates need it and `parlor-testkit` is
//! slow to compile.

mod rng;

pub use rng::Rng;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Environment variable with the seed of random tests: a decimal number, or hexadecimal with `0x`.
pub const SEED: &str = "PARLOR_TEST_SEED";

/// Environment variable with the factor by which random tests multiply their number of cases; default 1.
pub const ROUNDS: &str = "PARLOR_TEST_ROUNDS";

/// Returns the seed of this test process and prints it: the value of `PARLOR_TEST_SEED`, or a random one.
pub fn seed() -> u64 {
    static CHOSEN: OnceLock<u64> = OnceLock::new();
    let seed = *CHOSEN.get_or_init(|| variable(SEED).unwrap_or_else(fresh));
    println!("to repeat this: {SEED}={seed}");
    seed
}

/// Returns a random generator that starts from [`seed`].
pub fn rng() -> Rng {
    Rng::new(seed())
}

/// Returns the number of cases of a random test: its default number multiplied by `PARLOR_TEST_ROUNDS`.
pub fn cases(usual: u32) -> u32 {
    let rounds = variable(ROUNDS).map_or(1, |rounds| u32::try_from(rounds).unwrap_or(u32::MAX));
    usual.saturating_mul(rounds)
}

/// Returns the configuration for `proptest!` and `TestRunner`, with [`seed`] and 256 [`cases`] by default.
#[cfg(feature = "proptest")]
pub fn proptest_config() -> proptest::test_runner::Config {
    proptest_config_with(256)
}

/// Like [`proptest_config`], with another default number of cases.
#[cfg(feature = "proptest")]
pub fn proptest_config_with(usual_cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, RngSeed};
    Config {
        rng_seed: RngSeed::Fixed(seed()),
        cases: cases(usual_cases),
        // The printed seed is enough to repeat a failure, and tests must not write into the source tree.
        failure_persistence: None,
        ..Config::default()
    }
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(parse(&value).unwrap_or_else(|| panic!("{name}={value} is not a number")))
}

fn parse(value: &str) -> Option<u64> {
    match value.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    }
}

/// Returns a random seed. `RandomState` is seeded by the operating system, so no further dependency is
/// needed.
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
    fn proptest_generates_the_same_cases_from_the_same_seed() {
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
