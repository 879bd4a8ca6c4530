//! Response body of a search.

use super::True;
use crate::agentim::frames::MessageFrame;
use parlor_model::query;
use parlor_model::{Epoch, Position};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// A page of search results, best first.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Found<'a> {
    #[schema(inline)]
    pub ok: True,
    pub data: Vec<Hit<'a>>,
    /// Whether the search stopped at its timeout. The next page continues there.
    pub partial: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub next_cursor: Option<String>,
}

impl<'a> Found<'a> {
    pub fn new(found: &'a query::SearchResults, epoch: Epoch) -> Self {
        let cursor = |cursor: query::SearchCursor| {
            let position = Position { epoch, seq: cursor.before.unwrap_or_default() };
            format!("{position}.{}", cursor.skip)
        };
        let data = found.hits.iter().map(Hit::from).collect();
        Self { ok: True, data, partial: found.partial, next_cursor: found.next.map(cursor) }
    }
}

/// A found message with an excerpt around the matches.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Hit<'a> {
    #[serde(flatten)]
    pub message: MessageFrame<'a>,
    /// Excerpt of the message, in plain text.
    pub snippet: &'a str,
    pub highlights: Vec<Highlight>,
}

/// Range of a match within the snippet, in UTF-16 code units, as used by JavaScript strings.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct Highlight {
    pub start: usize,
    pub end: usize,
}

impl<'a> From<&'a query::Hit> for Hit<'a> {
    fn from(hit: &'a query::Hit) -> Self {
        let units = |end: usize| hit.snippet[..end].encode_utf16().count();
        let highlight =
            |range: &std::ops::Range<usize>| Highlight { start: units(range.start), end: units(range.end) };
        Self {
            message: (&*hit.message).into(),
            snippet: &hit.snippet,
            highlights: hit.highlights.iter().map(highlight).collect(),
        }
    }
}
