//! Which part of a file is asked for: one range of bytes, as RFC 9110 has it.

use http::HeaderMap;
use http::header::{IF_RANGE, RANGE};
use std::ops::Range;

#[derive(Debug, PartialEq)]
pub enum RequestedRange {
    Whole,
    Part(Range<u64>),
    /// A part that is not there.
    Nothing,
}

/// What is not understood, or asks for several parts, is answered with the whole. So is a condition: nothing says
/// which version a file is, since it has but one.
pub fn wanted(headers: &HeaderMap, size: u64) -> RequestedRange {
    let range = headers.get(RANGE).filter(|_| !headers.contains_key(IF_RANGE));
    match range.and_then(|range| range.to_str().ok()).and_then(|range| parse(range, size)) {
        None => RequestedRange::Whole,
        Some(part) if part.is_empty() => RequestedRange::Nothing,
        Some(part) => RequestedRange::Part(part),
    }
}

fn parse(range: &str, size: u64) -> Option<Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    match (first, last) {
        ("", last) => Some(size.saturating_sub(number(last)?)..size),
        (first, "") => Some(number(first)?..size),
        (first, last) => {
            let (first, last): (u64, u64) = (number(first)?, number(last)?);
            (first <= last).then(|| first..size.min(last.saturating_add(1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(range: &str, expected: RequestedRange) {
        let headers = HeaderMap::from_iter([(RANGE, range.parse().unwrap())]);
        assert_eq!(wanted(&headers, 10), expected, "{range}");
    }

    #[test]
    fn one_range_is_cut_to_what_is_there() {
        check("bytes=0-3", RequestedRange::Part(0..4));
        check("bytes=4-", RequestedRange::Part(4..10));
        check("bytes=-3", RequestedRange::Part(7..10));
        check("bytes=-99", RequestedRange::Part(0..10));
        check("bytes=9-18446744073709551615", RequestedRange::Part(9..10));
        check("bytes=10-", RequestedRange::Nothing);
        check("bytes=12-15", RequestedRange::Nothing);
        check("bytes=-0", RequestedRange::Nothing);
    }

    #[test]
    fn anything_else_gets_the_whole() {
        for range in
            ["", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "bytes=+1-2", "items=0-1"]
        {
            check(range, RequestedRange::Whole);
        }
        check("bytes=99999999999999999999-", RequestedRange::Whole);
        assert_eq!(wanted(&HeaderMap::new(), 10), RequestedRange::Whole);
    }
}
