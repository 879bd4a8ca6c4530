//! Changes of presence sets that clients made in the last minutes, in memory.

use crate::Limits;
use parlor_model::{Occupant, OccupantChange, Path, Time, UserId};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Age of a record after which it is dropped.
const MAX_AGE: Duration = Duration::from_secs(120);
/// Maximum number of records of one place; the oldest are dropped first.
const MAX_PER_PLACE: usize = 1000;
/// Number of dropped records, beyond that of the stored ones, whose entries in the order of all records may remain.
const SPARE_ENTRIES: usize = 4096;

/// A query for the changes of a place that clients made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupantHistory {
    /// Whether the oldest records come first; otherwise the newest.
    pub forwards: bool,
    /// Earliest time, inclusive.
    pub start: Option<Time>,
    /// Latest time, inclusive.
    pub end: Option<Time>,
    /// Number of the last record of the previous page; this page begins after it, in its direction.
    pub cursor: Option<u64>,
    pub limit: usize,
}

/// A change of a presence set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OccupantRecord {
    /// Number of the record; it increases with each record of any place.
    pub number: u64,
    pub user: UserId,
    pub change: OccupantChange,
    pub occupant: Arc<Occupant>,
}

pub struct History {
    places: HashMap<Path, VecDeque<OccupantRecord>>,
    /// All records, oldest first. A record that its place has already dropped is skipped.
    order: VecDeque<(Path, u64)>,
    /// Number of records in `places`.
    stored: usize,
    bytes: usize,
    max_bytes: usize,
    last_number: u64,
}

impl History {
    pub fn new(limits: &Limits) -> Self {
        let max_bytes = limits.occupant_history_bytes;
        Self {
            places: HashMap::new(),
            order: VecDeque::new(),
            stored: 0,
            bytes: 0,
            max_bytes,
            last_number: 0,
        }
    }

    pub fn add(&mut self, place: &Path, user: &UserId, change: OccupantChange, occupant: &Arc<Occupant>) {
        self.last_number += 1;
        let (number, occupant) = (self.last_number, occupant.clone());
        let now = occupant.at;
        self.bytes += weight(&occupant);
        self.stored += 1;
        let records = self.places.entry(place.clone()).or_default();
        records.push_back(OccupantRecord { number, user: user.clone(), change, occupant });
        if records.len() > MAX_PER_PLACE
            && let Some(dropped) = records.pop_front()
        {
            self.bytes -= weight(&dropped.occupant);
            self.stored -= 1;
        }
        self.order.push_back((place.clone(), number));
        self.truncate(now);
        self.compact();
    }

    /// Removes the entries of dropped records from `order` when they are the majority. Amortized constant time.
    fn compact(&mut self) {
        if self.order.len() <= 2 * self.stored + SPARE_ENTRIES {
            return;
        }
        let Self { places, order, .. } = self;
        order.retain(|(place, number)| {
            let first = places.get(place).and_then(VecDeque::front);
            first.is_some_and(|first| first.number <= *number)
        });
    }

    /// Drops the records that are too old, and the oldest ones beyond the limit of bytes.
    pub fn truncate(&mut self, now: Time) {
        let oldest = now.minus(MAX_AGE);
        while let Some((place, number)) = self.order.front() {
            let records = self.places.get_mut(place);
            let first = records.as_ref().and_then(|records| records.front());
            if let (Some(first), Some(records)) =
                (first.filter(|first| first.number == *number).cloned(), records)
            {
                if first.occupant.at >= oldest && self.bytes <= self.max_bytes {
                    return;
                }
                records.pop_front();
                self.bytes -= weight(&first.occupant);
                self.stored -= 1;
                if records.is_empty() {
                    self.places.remove(place);
                }
            }
            self.order.pop_front();
        }
    }

    /// Returns the records of the users that `is_seen` accepts.
    pub fn page(
        &self,
        place: &Path,
        query: &OccupantHistory,
        now: Time,
        is_seen: impl Fn(&UserId) -> bool,
    ) -> Vec<OccupantRecord> {
        let start = query.start.unwrap_or(Time(i64::MIN)).max(now.minus(MAX_AGE));
        let in_page = |record: &&OccupantRecord| {
            let beyond = query.cursor.is_none_or(|cursor| match query.forwards {
                true => record.number > cursor,
                false => record.number < cursor,
            });
            beyond
                && is_seen(&record.user)
                && record.occupant.at >= start
                && query.end.is_none_or(|end| record.occupant.at <= end)
        };
        let records = self.places.get(place).into_iter().flatten();
        match query.forwards {
            true => records.filter(in_page).take(query.limit).cloned().collect(),
            false => records.rev().filter(in_page).take(query.limit).cloned().collect(),
        }
    }
}

fn weight(occupant: &Occupant) -> usize {
    size_of::<Occupant>() + occupant.length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::OccupantSource;

    fn occupant(at: i64) -> Arc<Occupant> {
        let source = OccupantSource::Client { data: None };
        let (connection, client) = ("c1".into(), "ann".into());
        Arc::new(Occupant { connection, client, id: "x".into(), order: None, at: Time(at), source })
    }

    fn ann() -> UserId {
        UserId::stored("ann")
    }

    fn history(max_bytes: usize) -> History {
        History::new(&Limits { occupant_history_bytes: max_bytes, ..Limits::default() })
    }

    fn all(forwards: bool) -> OccupantHistory {
        OccupantHistory { forwards, start: None, end: None, cursor: None, limit: 10_000 }
    }

    fn numbers(history: &History, place: &Path, query: &OccupantHistory) -> Vec<u64> {
        history.page(place, query, Time(1), |_| true).iter().map(|record| record.number).collect()
    }

    #[test]
    fn pages_follow_each_other_in_both_directions() {
        let (mut history, place) = (history(1 << 20), Path::stored("x/a"));
        for at in 1..=5 {
            history.add(&place, &ann(), OccupantChange::Entered, &occupant(at));
        }
        history.add(&Path::stored("x/b"), &ann(), OccupantChange::Entered, &occupant(6));
        let page = |forwards, cursor| OccupantHistory { cursor, limit: 2, ..all(forwards) };
        assert_eq!(numbers(&history, &place, &page(true, None)), [1, 2]);
        assert_eq!(numbers(&history, &place, &page(true, Some(2))), [3, 4]);
        assert_eq!(numbers(&history, &place, &page(false, None)), [5, 4]);
        assert_eq!(numbers(&history, &place, &page(false, Some(4))), [3, 2]);
        let between = OccupantHistory { start: Some(Time(2)), end: Some(Time(3)), ..all(true) };
        assert_eq!(numbers(&history, &place, &between), [2, 3]);
        assert_eq!(history.page(&place, &all(true), Time(1), |user| *user != ann()), []);
    }

    #[test]
    fn records_are_dropped_by_age_number_and_bytes() {
        let place = Path::stored("x/a");
        let mut by_number = history(1 << 30);
        for _ in 0..MAX_PER_PLACE + 3 {
            by_number.add(&place, &ann(), OccupantChange::Updated, &occupant(1));
        }
        assert_eq!(numbers(&by_number, &place, &all(true))[0], 4);
        let minute = 60_000_000;
        by_number.truncate(Time(3 * minute));
        assert!(by_number.places.is_empty() && by_number.order.is_empty() && by_number.bytes == 0);
        let mut by_bytes = history(2 * weight(&occupant(1)));
        for _ in 0..5 {
            by_bytes.add(&place, &ann(), OccupantChange::Updated, &occupant(1));
        }
        assert_eq!(numbers(&by_bytes, &place, &all(true)), [4, 5]);
    }

    #[test]
    fn entries_of_dropped_records_are_forgotten() {
        let (quiet, busy) = (Path::stored("x/a"), Path::stored("x/b"));
        let mut history = history(1 << 30);
        history.add(&quiet, &ann(), OccupantChange::Entered, &occupant(1));
        for _ in 0..10 * (MAX_PER_PLACE + SPARE_ENTRIES) {
            history.add(&busy, &ann(), OccupantChange::Updated, &occupant(1));
            assert!(history.order.len() <= 2 * (MAX_PER_PLACE + 1) + SPARE_ENTRIES);
        }
        assert_eq!(history.stored, MAX_PER_PLACE + 1);
        assert_eq!(numbers(&history, &quiet, &all(true)), [1]);
        history.truncate(Time(180_000_000));
        assert!(history.places.is_empty() && history.order.is_empty() && history.stored == 0);
    }

    #[test]
    fn records_older_than_two_minutes_are_not_returned() {
        let (mut history, place) = (history(1 << 20), Path::stored("x/a"));
        history.add(&place, &ann(), OccupantChange::Entered, &occupant(1));
        assert_eq!(history.page(&place, &all(true), Time(121_000_000), |_| true), []);
    }
}
