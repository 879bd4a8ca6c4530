//! Parses the `Range` header of a download: one range of bytes, as in RFC 9110.

use http::HeaderMap;
use http::header::{IF_RANGE, RANGE};
use std::ops::Range;

#[derive(Debug, PartialEq)]
pub enum RequestedRange {
    Whole,
    Part(Range<u64>),
    /// A range beyond the end of the file (416).
    Unsatisfiable,
}

/// Range of a request for a file of `size` bytes. Invalid and multiple ranges select the whole file, and so
/// does any `If-Range` header: files have no version to compare, because they never change.
pub fn requested_range(headers: &HeaderMap, size: u64) -> RequestedRange {
    let range = headers.get(RANGE).filter(|_| !headers.contains_key(IF_RANGE));
    match range.and_then(|range| range.to_str().ok()).and_then(|range| parse(range, size)) {
        None => RequestedRange::Whole,
        Some(part) if part.is_empty() => RequestedRange::Unsatisfiable,
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
        assert_eq!(requested_range(&headers, 10), expected, "{range}");
    }

    #[test]
    fn a_single_range_is_limited_to_the_size_of_the_file() {
        check("bytes=0-3", RequestedRange::Part(0..4));
        check("bytes=4-", RequestedRange::Part(4..10));
        check("bytes=-3", RequestedRange::Part(7..10));
        check("bytes=-99", RequestedRange::Part(0..10));
        check("bytes=9-18446744073709551615", RequestedRange::Part(9..10));
        check("bytes=10-", RequestedRange::Unsatisfiable);
        check("bytes=12-15", RequestedRange::Unsatisfiable);
        check("bytes=-0", RequestedRange::Unsatisfiable);
    }

    #[test]
    fn any_other_range_header_selects_the_whole_file() {
        for range in
            ["", "bytes", "bytes=", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "bytes=+1-2", "items=0-1"]
        {
            check(range, RequestedRange::Whole);
        }
        check("bytes=99999999999999999999-", RequestedRange::Whole);
        assert_eq!(requested_range(&HeaderMap::new(), 10), RequestedRange::Whole);
    }
}
