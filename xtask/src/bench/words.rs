//! Texts to publish, made of English words: repeated bytes would make every buffer and index look faster.

pub const WORDS: &[&str] = &[
    "room", "agent", "please", "look", "at", "the", "build", "log", "before", "we", "merge", "this",
    "branch", "it", "fails", "on", "second", "step", "with", "a", "timeout", "and", "nobody", "knows", "why",
    "yet", "could", "you", "try", "again", "after", "lunch", "thanks", "everyone", "for", "reading",
    "slowly", "maybe", "database", "keeps", "old", "rows", "until", "tonight", "then", "they", "go", "away",
    "quietly", "unless",
];

/// Returns `count` different texts of exactly `length` bytes. They are the same in every run.
pub fn texts(count: usize, length: usize) -> Vec<String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).map(|_| text(&mut state, length)).collect()
}

fn text(state: &mut u64, length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        // xorshift64: deterministic, and sufficient to choose words.
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        text.push_str(WORDS[(*state % WORDS.len() as u64) as usize]);
        text.push(' ');
    }
    text.truncate(length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_requested_length_and_differ() {
        let texts = texts(16, 140);
        assert!(texts.iter().all(|text| text.len() == 140));
        assert!(texts.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
