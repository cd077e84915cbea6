//! The active set of a running solver, and shrinking.
//!
//! # Method
//! A variable at a bound is shrunk if its gradient shows that it will stay there: it is only in I_up
//! and its gradient lies below all of I_low, or the mirror image. The rows and arrays of the remaining
//! *active set* are gathered, so that an iteration costs less. Once the active set has converged, the
//! gradients of the shrunk variables are reconstructed from the β that changed, all variables become
//! active again, and only a small gap over all of them ends the run. So shrinking does not change the
//! optimum.

use std::ops::{Deref, Range};

use super::active_rows::ActiveRows;
use super::conjugate::ConjugateDirection;
use super::loops::ArgMax;
use crate::svm::dual::{Bounds, Dual, Start};
use crate::svm::gram::KernelRows;

/// Consecutive variables of one group that are contiguous in a kernel row, too.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    /// Their positions in the active set.
    pub(super) positions: Range<usize>,
    /// Their range of a kernel row.
    pub(super) column: Range<usize>,
    /// Their group.
    pub(super) group: usize,
}

/// Parallel arrays of the active variables: all of them, or the gathered ones.
#[derive(Debug)]
pub(super) struct ActiveSet {
    /// The arrays in pieces, one after the other.
    pub(super) pieces: Vec<Piece>,
    pub(super) gradient: Vec<f64>,
    /// 0 in I_up (β below its upper bound), −∞ elsewhere.
    pub(super) up_mask: Vec<f64>,
    /// 0 in I_low (β above its lower bound), ∞ elsewhere.
    pub(super) low_mask: Vec<f32>,
    /// K(v, v).
    pub(super) diagonal: Vec<f32>,
    /// The maximum gradient over I_up of each group: the next i.
    pub(super) g_max: Vec<ArgMax>,
    /// The direction of the last step, if steps are conjugate.
    pub(super) direction: Option<ConjugateDirection>,
}

impl ActiveSet {
    /// All variables.
    pub(super) fn new(dual: &Dual<'_>, bounds: &Bounds, start: &Start, conjugate: bool) -> Self {
        let diagonal = dual.gram().diagonal();
        let mut end = 0;
        let pieces = dual.columns().iter().map(|column| {
            let positions = end..end + column.len();
            end = positions.end;
            let mut groups = bounds.groups.iter();
            let group = groups.position(|group| group.variables.end >= positions.end);
            Piece {
                positions,
                column: column.clone(),
                group: group.unwrap_or(0),
            }
        });
        let mut active = Self {
            pieces: pieces.collect(),
            gradient: start.gradient.clone(),
            up_mask: vec![0.0; dual.len()],
            low_mask: vec![0.0; dual.len()],
            diagonal: Vec::with_capacity(dual.len()),
            g_max: vec![ArgMax::NONE; bounds.groups.len()],
            direction: conjugate.then(|| ConjugateDirection::new(dual.len())),
        };
        for range in dual.columns() {
            active.diagonal.extend(&diagonal[range.clone()]);
        }
        for (v, &beta) in start.beta.iter().enumerate() {
            active.update_masks(v, beta, bounds.range(v));
        }
        active.find_g_max();
        active
    }

    /// Updates the membership of a variable in I_up and I_low.
    pub(super) fn update_masks(&mut self, at: usize, beta: f64, (lower, upper): (f64, f64)) {
        self.up_mask[at] = if beta < upper { 0.0 } else { f64::NEG_INFINITY };
        self.low_mask[at] = if beta > lower { 0.0 } else { f32::INFINITY };
    }

    pub(super) fn find_g_max(&mut self) {
        self.g_max.fill(ArgMax::NONE);
        for piece in &self.pieces {
            for at in piece.positions.clone() {
                self.g_max[piece.group].include(self.gradient[at] + self.up_mask[at], at);
            }
        }
    }

    /// The minimum gradient over I_low of each group.
    fn g_min(&self) -> Vec<f64> {
        let mut g_min = vec![f64::INFINITY; self.g_max.len()];
        for Piece {
            positions, group, ..
        } in &self.pieces
        {
            let gradient = &self.gradient[positions.clone()];
            let values = gradient.iter().zip(&self.low_mask[positions.clone()]);
            let values = values.map(|(g, &low)| g + f64::from(low));
            g_min[*group] = values.fold(g_min[*group], f64::min);
        }
        g_min
    }

    /// The positions of the variables that are not to be shrunk.
    pub(super) fn unshrinkable(&self) -> Vec<usize> {
        let g_min = self.g_min();
        let stays = |at: usize, group: usize| {
            let gradient = self.gradient[at];
            match (self.up_mask[at] == 0.0, self.low_mask[at] == 0.0) {
                (true, true) => true,
                (true, false) => gradient >= g_min[group],
                (false, true) => gradient <= self.g_max[group].value,
                (false, false) => false,
            }
        };
        let of_piece = |piece: &Piece| {
            let group = piece.group;
            piece.positions.clone().filter(move |&at| stays(at, group))
        };
        self.pieces.iter().flat_map(of_piece).collect()
    }

    /// The arrays of the variables at these positions.
    pub(super) fn gather(&self, positions: &[usize]) -> Self {
        let direction = self.direction.as_ref();
        let pieces = (0..self.g_max.len()).map(|group| {
            let end_of = |is_before: &dyn Fn(&Piece) -> bool| {
                let pieces = self.pieces.iter().filter(|piece| is_before(piece));
                let end = pieces.map(|piece| piece.positions.end).max();
                positions.partition_point(|&at| at < end.unwrap_or(0))
            };
            let positions =
                end_of(&|piece| piece.group < group)..end_of(&|piece| piece.group <= group);
            Piece {
                column: positions.clone(),
                positions,
                group,
            }
        });
        let mut gathered = Self {
            pieces: pieces.collect(),
            gradient: gather(&self.gradient, positions),
            up_mask: gather(&self.up_mask, positions),
            low_mask: gather(&self.low_mask, positions),
            diagonal: gather(&self.diagonal, positions),
            g_max: vec![ArgMax::NONE; self.g_max.len()],
            direction: direction.map(|_| ConjugateDirection::new(positions.len())),
        };
        gathered.find_g_max();
        gathered
    }
}

fn gather<T: Copy>(values: &[T], positions: &[usize]) -> Vec<T> {
    positions.iter().map(|&at| values[at]).collect()
}

/// The variables of a shrunk active set, and the state of all variables when shrinking began.
#[derive(Debug)]
pub(super) struct Shrunk<K: KernelRows> {
    pub(super) variables: Vec<usize>,
    /// Their samples; no kernel matrix has more than fit a u32.
    samples: Vec<u32>,
    /// The arrays of all variables, and the β of their gradient.
    pub(super) all: ActiveSet,
    pub(super) beta: Vec<f64>,
    pub(super) rows: ActiveRows<K::Value>,
}

impl<K: KernelRows> Shrunk<K> {
    /// Shrinks all variables but the listed ones.
    #[allow(clippy::cast_possible_truncation)] // see `samples`
    pub(super) fn new(
        kernel: K,
        variables: Vec<usize>,
        dual: &Dual<'_>,
        all: ActiveSet,
        beta: Vec<f64>,
    ) -> Self {
        let buffer = kernel.buffers().acquire();
        Self {
            samples: variables.iter().map(|&v| dual.sample(v) as u32).collect(),
            all,
            beta,
            rows: ActiveRows::new(variables.len(), buffer.unwrap_or_default()),
            variables,
        }
    }

    /// Keeps only the variables at these positions active.
    pub(super) fn shrink_further(self, positions: &[usize]) -> Self {
        Self {
            variables: gather(&self.variables, positions),
            samples: gather(&self.samples, positions),
            rows: self.rows.shrink_further(positions),
            ..self
        }
    }

    /// Gathers the kernel row of a position unless it is cached.
    fn cache_row(&mut self, kernel: K, at: usize) {
        let samples = &self.samples;
        let write = |out: &mut [_]| kernel.gather(samples[at] as usize, samples, out);
        self.rows.ensure(at, write);
    }
}

/// The kernel row of an active variable: whole, or gathered.
pub(super) enum ActiveRow<'s, K: KernelRows> {
    Whole(K::Row),
    Gathered(&'s [K::Value]),
}

impl<K: KernelRows> Deref for ActiveRow<'_, K> {
    type Target = [K::Value];

    fn deref(&self) -> &[K::Value] {
        match self {
            Self::Whole(row) => row,
            Self::Gathered(row) => row,
        }
    }
}

/// The kernel rows of up to two positions.
pub(super) fn active_rows<'s, K: KernelRows, const N: usize>(
    kernel: K,
    dual: &Dual<'_>,
    shrunk: &'s mut Option<Shrunk<K>>,
    positions: [usize; N],
) -> [ActiveRow<'s, K>; N] {
    let Some(shrunk) = shrunk else {
        return positions.map(|at| ActiveRow::Whole(kernel.row(dual.sample(at))));
    };
    for at in positions {
        shrunk.cache_row(kernel, at);
    }
    positions.map(|at| ActiveRow::Gathered(shrunk.rows.get(at)))
}
