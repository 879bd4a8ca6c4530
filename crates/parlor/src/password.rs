//! Generates passwords for new users and password resets.

use crate::secret::Secret;
use anyhow::Context;

/// Letters and digits without lookalikes such as `0` and `O`, so that a password can be copied by hand.
const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const GROUPS: usize = 4;
const GROUP_LENGTH: usize = 5;

/// Generates a password with about 115 bits of entropy that satisfies the password rules.
pub fn generate() -> anyhow::Result<Secret> {
    loop {
        let characters = draw(GROUPS * GROUP_LENGTH)?;
        // The rules require a lower-case letter, an upper-case letter and a digit. Redrawing the whole
        // password keeps every valid password equally likely.
        let has = |kind: fn(&u8) -> bool| characters.iter().any(kind);
        if has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit) {
            let groups: Vec<_> = characters.chunks(GROUP_LENGTH).map(String::from_utf8_lossy).collect();
            return Ok(Secret::new(groups.join("-")));
        }
    }
}

fn draw(count: usize) -> anyhow::Result<Vec<u8>> {
    // Rejection sampling: bytes at or above the largest multiple of the alphabet's length would make its
    // first letters more likely.
    let fair = 256 / ALPHABET.len() * ALPHABET.len();
    let mut drawn = Vec::with_capacity(count);
    let mut random = [0_u8; 64];
    while drawn.len() < count {
        getrandom::fill(&mut random).context("the system provides no random numbers")?;
        let letters = random.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < fair);
        drawn.extend(letters.map(|byte| ALPHABET[byte % ALPHABET.len()]));
    }
    drawn.truncate(count);
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn generated_passwords_satisfy_the_rules_and_are_unique() {
        let mut seen = BTreeSet::new();
        for _ in 0..200 {
            let password = generate().unwrap().expose().to_owned();
            assert_eq!(password.len(), 23, "{password}");
            assert!(password.contains(|c: char| c.is_ascii_lowercase()), "{password}");
            assert!(password.contains(|c: char| c.is_ascii_uppercase()), "{password}");
            assert!(password.contains(|c: char| c.is_ascii_digit()), "{password}");
            assert!(seen.insert(password));
        }
    }

    #[test]
    fn every_letter_can_be_drawn() {
        let drawn: BTreeSet<u8> = draw(10_000).unwrap().into_iter().collect();
        assert_eq!(drawn, ALPHABET.iter().copied().collect());
    }
}
