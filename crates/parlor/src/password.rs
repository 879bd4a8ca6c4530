//! Makes passwords for people who did not bring one.

use crate::secret::Secret;
use anyhow::Context;

/// Letters and digits that cannot be taken for each other when read aloud or copied by hand.
const ALPHABET: &[u8] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const GROUPS: usize = 4;
const GROUP_LENGTH: usize = 5;

/// Makes a password of about 115 bits that satisfies the password rules.
pub fn generate() -> anyhow::Result<Secret> {
    loop {
        let characters = draw(GROUPS * GROUP_LENGTH)?;
        // The rules ask for one of each; redrawing keeps every such password equally likely.
        let has = |kind: fn(&u8) -> bool| characters.iter().any(kind);
        if has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit) {
            let groups: Vec<_> = characters.chunks(GROUP_LENGTH).map(String::from_utf8_lossy).collect();
            return Ok(Secret::new(groups.join("-")));
        }
    }
}

fn draw(count: usize) -> anyhow::Result<Vec<u8>> {
    // Bytes at and above the largest multiple of the alphabet would favour its first letters.
    let fair = 256 / ALPHABET.len() * ALPHABET.len();
    let mut drawn = Vec::with_capacity(count);
    let mut random = [0_u8; 64];
    while drawn.len() < count {
        getrandom::fill(&mut random).context("the system gives no random numbers")?;
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
    fn a_made_password_keeps_the_rules_and_never_repeats() {
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
