//! The heap of trees that grow best first.
//!
//! Which of two nodes of equal gain comes first depends on the heap, so it is that of scikit-learn: the
//! one of the C++ standard library of GCC.

/// Items by their gain, the largest first: `std::push_heap` and `std::pop_heap`.
pub(super) struct Heap<T>(Vec<(f64, T)>);

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<T> Heap<T> {
    pub(super) fn push(&mut self, gain: f64, item: T) {
        self.0.push((gain, item));
        self.rise(self.0.len() - 1);
    }

    /// Takes the last item to the bottom, always by the larger child, and from there up to its place.
    pub(super) fn pop(&mut self) -> Option<(f64, T)> {
        let heap = &mut self.0;
        if heap.is_empty() {
            return None;
        }
        let largest = heap.swap_remove(0);
        let mut hole = 0;
        while 2 * hole + 2 < heap.len() {
            let right = 2 * hole + 2;
            let child = right - usize::from(heap[right].0 < heap[right - 1].0);
            heap.swap(hole, child);
            hole = child;
        }
        if 2 * hole + 2 == heap.len() {
            heap.swap(hole, 2 * hole + 1);
            hole = 2 * hole + 1;
        }
        self.rise(hole);
        Some(largest)
    }

    /// All items, in any order.
    pub(super) fn into_items(self) -> impl Iterator<Item = T> {
        self.0.into_iter().map(|(_, item)| item)
    }

    fn rise(&mut self, mut hole: usize) {
        let heap = &mut self.0;
        while hole > 0 && heap[(hole - 1) / 2].0 < heap[hole].0 {
            heap.swap(hole, (hole - 1) / 2);
            hole = (hole - 1) / 2;
        }
    }
}
