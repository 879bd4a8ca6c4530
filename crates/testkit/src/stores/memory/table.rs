//! Table with a unique key that also iterates in insertion order.

use std::collections::BTreeMap;

pub fn sorted<Row, Order: Ord>(rows: impl Iterator<Item = Row>, by: impl Fn(&Row) -> Order) -> Vec<Row> {
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by_key(by);
    rows
}

#[derive(Clone)]
pub struct Table<Key, Row> {
    positions: BTreeMap<Key, u64>,
    rows: BTreeMap<u64, Row>,
    next: u64,
}

impl<Key, Row> Default for Table<Key, Row> {
    fn default() -> Self {
        Self { positions: BTreeMap::new(), rows: BTreeMap::new(), next: 0 }
    }
}

impl<Key: Ord, Row> Table<Key, Row> {
    pub fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.get(self.positions.get(key)?)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Row> {
        self.rows.get_mut(self.positions.get(key)?)
    }

    /// Inserts or replaces the row of `key`. A replacement keeps the position of the row it replaces.
    pub fn put(&mut self, key: Key, row: Row) {
        let next = &mut self.next;
        let position = *self.positions.entry(key).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.rows.insert(position, row);
    }

    pub fn remove(&mut self, key: &Key) {
        if let Some(position) = self.positions.remove(key) {
            self.rows.remove(&position);
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&Key) -> bool) {
        let rows = &mut self.rows;
        self.positions.retain(|key, position| {
            let kept = keep(key);
            if !kept {
                rows.remove(position);
            }
            kept
        });
    }

    /// Rows in insertion order, oldest first.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.values()
    }
}
