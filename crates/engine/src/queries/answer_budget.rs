//! The answer budget: the maximum size of one answer, so that many slow readers of large answers cannot exhaust
//! the memory.

/// Maximum bytes of text in one answer.
pub const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Number of items, of these byte lengths, that fit into one answer: at least one.
pub fn count_within_budget(lengths: impl Iterator<Item = usize>) -> usize {
    let mut total = 0;
    let fits = |length: &usize| {
        total += length;
        total <= MAX_ANSWER_BYTES
    };
    lengths.take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_at_least_one_item_and_otherwise_keeps_the_budget() {
        let count = |lengths: &[usize]| count_within_budget(lengths.iter().copied());
        assert_eq!(count(&[MAX_ANSWER_BYTES + 1, 1]), 1);
        assert_eq!(count(&[MAX_ANSWER_BYTES, 1]), 1);
        assert_eq!(count(&[MAX_ANSWER_BYTES - 1, 1, 1]), 2);
    }
}
