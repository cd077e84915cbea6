//! The most recently used rows of a matrix that does not fit the memory budget.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rows by the time of their last use.
#[derive(Debug)]
pub(super) struct RowCache {
    capacity: usize,
    clock: u64,
    rows: HashMap<usize, (u64, Arc<Vec<f32>>)>,
    by_use: BTreeMap<u64, usize>,
}

impl RowCache {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clock: 0,
            rows: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    pub(super) fn get(&mut self, i: usize) -> Option<Arc<Vec<f32>>> {
        let (used, row) = self.rows.get_mut(&i)?;
        self.by_use.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.by_use.insert(self.clock, i);
        Some(Arc::clone(row))
    }

    /// A buffer for a row: that of the least recently used one if the cache is full and no thread
    /// reads it.
    pub(super) fn reclaim(&mut self) -> Vec<f32> {
        let evicted = (self.rows.len() >= self.capacity).then(|| self.evict());
        let row = evicted.flatten();
        row.and_then(|row| Arc::try_unwrap(row).ok())
            .unwrap_or_default()
    }

    fn evict(&mut self) -> Option<Arc<Vec<f32>>> {
        let (_, oldest) = self.by_use.pop_first()?;
        self.rows.remove(&oldest).map(|(_, row)| row)
    }

    pub(super) fn insert(&mut self, i: usize, row: &Arc<Vec<f32>>) {
        if self.get(i).is_some() {
            return;
        }
        while self.rows.len() >= self.capacity && self.evict().is_some() {}
        self.clock += 1;
        self.by_use.insert(self.clock, i);
        self.rows.insert(i, (self.clock, Arc::clone(row)));
    }
}
