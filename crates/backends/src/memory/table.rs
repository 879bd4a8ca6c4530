//! Rows by key that remember in which order they came.

use std::collections::BTreeMap;

pub fn sorted<Row, Order: Ord>(rows: impl Iterator<Item = Row>, by: impl Fn(&Row) -> Order) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by_key(by);
    rows
}

#[derive(Clone)]
pub struct Table<Key, Row> {
    places: BTreeMap<Key, u64>,
    rows: BTreeMap<u64, Row>,
    next: u64,
}

impl<Key, Row> Default for Table<Key, Row> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), rows: BTreeMap::new(), next: 0 }
    }
}

impl<Key: Ord, Row> Table<Key, Row> {
    pub fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.get(self.places.get(key)?)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Row> {
        self.rows.get_mut(self.places.get(key)?)
    }

    /// A row that replaces another keeps its place.
    pub fn put(&mut self, key: Key, row: Row) {
        let next = &mut self.next;
        let place = *self.places.entry(key).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.rows.insert(place, row);
    }

    pub fn remove(&mut self, key: &Key) {
        if let Some(place) = self.places.remove(key) {
            self.rows.remove(&place);
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&Key) -> bool) {
        let rows = &mut self.rows;
        self.places.retain(|key, place| {
            let kept = keep(key);
            if !kept {
                rows.remove(place);
            }
            kept
        });
    }

    /// The oldest first.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.values()
    }
}
