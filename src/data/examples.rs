//! A data set whose layout is known at compile time: what kernels are written against.

use std::slice::Iter;

use super::{Layout, PREFETCH_DISTANCE, PREFETCH_MIN_ROWS, Row, TLB_DISTANCE};
use crate::runtime::{cache, simd};
use crate::{Error, Result};

/// What is to be learnt of each row.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// Nothing: clustering, density estimation.
    None,
    /// A class for each row, as a code in `0..n_classes`.
    Classes {
        /// One code per row.
        codes: &'a [u32],
        /// How many classes there are, whether or not all of them occur.
        n_classes: usize,
    },
    /// `n_outputs` numbers for each row, row after row.
    Values {
        /// `n_rows × n_outputs` numbers.
        values: &'a [f64],
        /// Numbers per row.
        n_outputs: usize,
    },
}

/// The rows, targets and weights of a [`Dataset`](super::Dataset), typed by their layout.
#[derive(Clone, Copy, Debug)]
pub struct Examples<'a, R> {
    pub(super) rows: R,
    pub(super) targets: Targets<'a>,
    pub(super) weights: Option<&'a [f64]>,
}

impl Targets<'_> {
    /// How many numbers a row has; 0 for classes.
    pub fn n_outputs(&self) -> usize {
        match self {
            Targets::Values { n_outputs, .. } => *n_outputs,
            _ => 0,
        }
    }
}

impl<'a, R: Layout> Examples<'a, R> {
    /// The rows.
    #[inline(always)]
    pub fn rows(&self) -> &R {
        &self.rows
    }

    /// The targets.
    pub fn targets(&self) -> Targets<'a> {
        self.targets
    }

    /// The weight of a row; 1 where none were given.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline(always)]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// The class codes, for a learner of `n_classes` classes.
    pub fn classes(&self, n_classes: usize) -> Result<&'a [u32]> {
        match self.targets {
            Targets::Classes {
                codes,
                n_classes: found,
            } if found <= n_classes => Ok(codes),
            Targets::Classes {
                n_classes: found, ..
            } => Err(Error::Shape {
                what: "classes of y",
                expected: n_classes,
                found,
            }),
            _ => Err(wrong_targets("classes")),
        }
    }

    /// The target values, for a learner of `n_outputs` numbers a row.
    pub fn values(&self, n_outputs: usize) -> Result<&'a [f64]> {
        match self.targets {
            Targets::Values {
                values,
                n_outputs: found,
            } if found == n_outputs => Ok(values),
            Targets::Values {
                n_outputs: found, ..
            } => Err(Error::Shape {
                what: "columns of y",
                expected: n_outputs,
                found,
            }),
            _ => Err(wrong_targets("numbers")),
        }
    }

    /// [`Error::Shape`] unless rows have `n_features` features.
    pub fn check_features(&self, n_features: usize) -> Result<()> {
        check_length("features of X", n_features, self.rows.n_features())
    }

    /// Iterates over `rows` with software prefetching: for scattered rows, and for consecutive rows
    /// that come from memory, where the hardware prefetcher starts late.
    #[inline(always)]
    pub fn prefetched<'r>(&'r self, rows: &'r [usize]) -> Prefetched<'r, 'a, R> {
        let is_run = |rows: &[usize]| rows[rows.len() - 1].wrapping_sub(rows[0]) == rows.len() - 1;
        let prefetches =
            rows.len() > PREFETCH_MIN_ROWS && (!is_run(rows) || self.come_from_memory(rows));
        let ahead = if prefetches { rows } else { &[] };
        let from = |distance: usize| ahead.get(distance..).unwrap_or_default().iter();
        Prefetched {
            examples: self,
            rows: rows.iter(),
            soon: from(PREFETCH_DISTANCE),
            later: from(TLB_DISTANCE),
        }
    }

    /// An estimate: above 4 MB per call, rows are assumed to have left the caches.
    #[inline]
    fn come_from_memory(&self, rows: &[usize]) -> bool {
        self.rows.n_stored() as f64 > cache::LLC_VALUES
            && rows.len() as f64 * self.mean_nnz() > cache::LLC_SHARE_VALUES / 2.0
    }

    #[inline(always)]
    fn prefetch(&self, row: usize) {
        self.rows.row(row).prefetch();
        match self.targets {
            Targets::None => {}
            Targets::Classes { codes, .. } => simd::prefetch(&codes[row..=row]),
            Targets::Values { values, n_outputs } => {
                simd::prefetch(&values[row * n_outputs..][..n_outputs]);
            }
        }
        if let Some(weights) = self.weights {
            simd::prefetch(&weights[row..=row]);
        }
    }

    /// The mean number of stored values per row.
    pub fn mean_nnz(&self) -> f64 {
        self.rows.n_stored() as f64 / self.rows.n_rows().max(1) as f64
    }
}

/// Iterator of [`Examples::prefetched`]. (Not a closure: see [`dispatch`](simd::dispatch).)
#[derive(Debug)]
pub struct Prefetched<'r, 'a, R> {
    examples: &'r Examples<'a, R>,
    rows: Iter<'r, usize>,
    soon: Iter<'r, usize>,
    later: Iter<'r, usize>,
}

impl<R: Layout> Iterator for Prefetched<'_, '_, R> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if let Some(&later) = self.later.next() {
            self.examples.rows.row(later).prefetch_start();
        }
        if let Some(&soon) = self.soon.next() {
            self.examples.prefetch(soon);
        }
        self.rows.next().copied()
    }
}

/// Fills `buffer` with the `width` values of each row at `order`.
pub(super) fn gather_into<T: Copy>(buffer: &mut Vec<T>, all: &[T], order: &[usize], width: usize) {
    buffer.clear();
    for &row in order {
        buffer.extend_from_slice(&all[row * width..][..width]);
    }
}

/// An error unless `codes` are one class of `0..n_classes` per row.
pub(super) fn check_classes(codes: &[u32], n_classes: usize, n_rows: usize) -> Result<()> {
    check_length("y", n_rows, codes.len())?;
    match codes.iter().position(|&code| code as usize >= n_classes) {
        None => Ok(()),
        Some(row) => Err(Error::Value {
            place: format!("y[{row}]"),
            value: codes[row].into(),
            rule: "classes are coded from 0 to the number of classes less one",
        }),
    }
}

/// An error unless `values` are `n_outputs` finite values per row.
pub(super) fn check_values(values: &[f64], n_outputs: usize, n_rows: usize) -> Result<()> {
    check_length("y", n_rows, values.len() / n_outputs.max(1))?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(i) => Err(Error::Value {
            place: format!("y[{}]", i / n_outputs),
            value: values[i],
            rule: "every value must be finite",
        }),
    }
}

/// An error unless `weights` are one finite weight per row, none negative, with a finite sum.
pub(super) fn check_weights(weights: &[f64], n_rows: usize) -> Result<()> {
    check_length("weights", n_rows, weights.len())?;
    if let Some(row) = weights.iter().position(|&w| !(w.is_finite() && w >= 0.0)) {
        return Err(Error::Value {
            place: format!("weights[{row}]"),
            value: weights[row],
            rule: "a weight must be finite and not negative",
        });
    }
    let total: f64 = weights.iter().sum();
    if total.is_finite() {
        return Ok(());
    }
    Err(Error::Value {
        place: "the sum of weights".into(),
        value: total,
        rule: "it must be finite; scale the weights down",
    })
}

pub(super) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        Ok(())
    } else {
        Err(Error::Shape {
            what,
            expected,
            found,
        })
    }
}

fn wrong_targets(needed: &'static str) -> Error {
    Error::Parameter {
        name: "y",
        rule: "what the learner learns",
        value: format!("targets that are not {needed}"),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::data::Dense;

    fn message<T>(result: Result<T>) -> String {
        result.err().map_or(String::new(), |e| e.to_string())
    }

    #[test]
    fn targets_are_what_the_learner_asks_for() {
        let x = array![[1.0], [2.0]];
        let rows = Dense::new(x.view()).expect("shape");
        let examples = |targets| Examples {
            rows,
            targets,
            weights: None,
        };
        let classes = examples(Targets::Classes {
            codes: &[0, 1],
            n_classes: 2,
        });
        assert_eq!(classes.classes(2).expect("classes"), [0, 1]);
        assert!(message(classes.classes(1)).contains("classes of y"));
        assert!(message(classes.values(1)).contains("not numbers"));
        assert!(message(classes.check_features(3)).contains("features of X: expected length 3"));
        let values = examples(Targets::Values {
            values: &[5.0, 6.0],
            n_outputs: 1,
        });
        assert_eq!(values.values(1).expect("values"), [5.0, 6.0]);
        assert!(message(values.values(2)).contains("columns of y"));
        assert!(message(values.classes(2)).contains("not classes"));
        assert_eq!(values.weight(1), 1.0);
    }
}
