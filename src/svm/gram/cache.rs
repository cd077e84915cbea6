//! The rows that were used last, where the whole matrix has no room.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rows by the time of their last use.
#[derive(Debug)]
pub(super) struct RowCache {
    capacity: usize,
    clock: u64,
    rows: HashMap<usize, (u64, Arc<[f32]>)>,
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

    pub(super) fn find(&mut self, i: usize) -> Option<Arc<[f32]>> {
        let (used, row) = self.rows.get_mut(&i)?;
        self.by_use.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.by_use.insert(self.clock, i);
        Some(Arc::clone(row))
    }

    pub(super) fn keep(&mut self, i: usize, row: &Arc<[f32]>) {
        if self.find(i).is_some() {
            return;
        }
        while self.rows.len() >= self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            self.rows.remove(&oldest);
        }
        self.clock += 1;
        self.by_use.insert(self.clock, i);
        self.rows.insert(i, (self.clock, Arc::clone(row)));
    }
}
