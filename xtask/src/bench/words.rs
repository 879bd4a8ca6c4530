//! Texts to publish: words of plain English, since one repeated byte would flatter every buffer and index.

pub const WORDS: &[&str] = &[
    "room", "agent", "please", "look", "at", "the", "build", "log", "before", "we", "merge", "this",
    "branch", "it", "fails", "on", "second", "step", "with", "a", "timeout", "and", "nobody", "knows", "why",
    "yet", "could", "you", "try", "again", "after", "lunch", "thanks", "everyone", "for", "reading",
    "slowly", "maybe", "database", "keeps", "old", "rows", "until", "tonight", "then", "they", "go", "away",
    "quietly", "unless",
];

/// `count` different texts of exactly `length` bytes, the same ones in every run.
pub fn texts(count: usize, length: usize) -> Vec<String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).map(|_| text(&mut state, length)).collect()
}

fn text(state: &mut u64, length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        // xorshift64: repeatable, and good enough to shuffle words.
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
    fn texts_have_the_length_asked_for_and_differ() {
        let texts = texts(16, 140);
        assert!(texts.iter().all(|text| text.len() == 140));
        assert!(texts.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
