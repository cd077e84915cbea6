//! Rows together with what is to be learnt from them.

use std::slice::Iter;

use super::{AHEAD, CACHED, FAR_AHEAD, FEW, Layout, MANY, Row, Samples};
use crate::runtime::simd;
use crate::{Error, Result};

/// What is to be learnt of each row.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    /// Nothing: clustering, density estimation.
    None,
    /// A class for each row, as a code in `0..n_classes`.
    Classes {
        /// One code a row.
        codes: &'a [u32],
        /// How many classes there are, whether or not all of them occur.
        n_classes: usize,
    },
    /// `n_outputs` numbers for each row, row after row.
    Values {
        /// `n_rows × n_outputs` numbers.
        values: &'a [f64],
        /// How many numbers a row has.
        n_outputs: usize,
    },
}

/// Rows, targets and weights, borrowed from the caller and checked once.
#[derive(Clone, Copy, Debug)]
pub struct Examples<'a, R> {
    rows: R,
    targets: Targets<'a>,
    weights: Option<&'a [f64]>,
}

impl<'a, R: Layout> Examples<'a, R> {
    /// Rows alone.
    pub fn unlabelled(rows: R) -> Self {
        Self {
            rows,
            targets: Targets::None,
            weights: None,
        }
    }

    /// Rows with a class each: `codes` of `0..n_classes`.
    pub fn classified(rows: R, codes: &'a [u32], n_classes: usize) -> Result<Self> {
        check_length("y", rows.n_rows(), codes.len())?;
        if let Some(row) = codes.iter().position(|&code| code as usize >= n_classes) {
            return Err(Error::Value {
                place: format!("y[{row}]"),
                value: codes[row].into(),
                rule: "classes are coded from 0 to the number of classes less one",
            });
        }
        Ok(Self {
            rows,
            targets: Targets::Classes { codes, n_classes },
            weights: None,
        })
    }

    /// Rows with `n_outputs` finite numbers each.
    pub fn valued(rows: R, values: &'a [f64], n_outputs: usize) -> Result<Self> {
        check_length("y", rows.n_rows() * n_outputs, values.len())?;
        if let Some(i) = values.iter().position(|value| !value.is_finite()) {
            return Err(Error::Value {
                place: format!("y[{}]", i / n_outputs),
                value: values[i],
                rule: "every value must be finite",
            });
        }
        Ok(Self {
            rows,
            targets: Targets::Values { values, n_outputs },
            weights: None,
        })
    }

    /// The same examples, each with a weight that is finite and not negative.
    pub fn weighted(self, weights: &'a [f64]) -> Result<Self> {
        check_length("sample_weight", self.rows.n_rows(), weights.len())?;
        if let Some(row) = weights.iter().position(|&w| !(w.is_finite() && w >= 0.0)) {
            return Err(Error::Value {
                place: format!("sample_weight[{row}]"),
                value: weights[row],
                rule: "a weight must be finite and not negative",
            });
        }
        Ok(Self {
            weights: Some(weights),
            ..self
        })
    }

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

    /// Copies the examples at `order`, in that order, to where others may have been before.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn gather<'s>(
        &self,
        order: &[usize],
        store: &'s mut Gathered<R::Store>,
    ) -> Examples<'s, R::View<'s>> {
        Examples {
            rows: self.rows.gather(order, &mut store.rows),
            targets: match self.targets {
                Targets::None => Targets::None,
                Targets::Classes { codes, n_classes } => Targets::Classes {
                    codes: refill(&mut store.codes, codes, order, 1),
                    n_classes,
                },
                Targets::Values { values, n_outputs } => Targets::Values {
                    values: refill(&mut store.values, values, order, n_outputs),
                    n_outputs,
                },
            },
            weights: match self.weights {
                None => None,
                Some(weights) => Some(refill(&mut store.weights, weights, order, 1)),
            },
        }
    }

    /// The same examples, numbering only `features`: see [`Layout::with_features`].
    pub fn with_features<'s>(
        &'s self,
        features: Option<&'s R::Features>,
    ) -> Examples<'s, R::View<'s>> {
        Examples {
            rows: self.rows.with_features(features),
            targets: self.targets,
            weights: self.weights,
        }
    }

    /// `rows` one by one. Those that are many and scattered are asked for some places ahead of their
    /// turn. So are rows that follow each other where they come from memory: the machine asks for them
    /// on its own, but a little late. Where they come from a cache it is early enough.
    #[inline(always)]
    pub fn ahead<'r>(&'r self, rows: &'r [usize]) -> Ahead<'r, 'a, R> {
        let is_run = |rows: &[usize]| rows[rows.len() - 1].wrapping_sub(rows[0]) == rows.len() - 1;
        let asked = if rows.len() > FEW && (!is_run(rows) || self.are_far(rows)) {
            rows
        } else {
            &[]
        };
        let from = |place: usize| asked.get(place..).unwrap_or_default().iter();
        Ahead {
            examples: self,
            rows: rows.iter(),
            soon: from(AHEAD),
            later: from(FAR_AHEAD),
        }
    }

    /// A guess: whether so many rows are in no cache when they are read in turn.
    #[inline]
    fn are_far(&self, rows: &[usize]) -> bool {
        self.rows.n_stored() > CACHED && rows.len() as f64 * self.stored_per_row() > MANY
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

    /// How many values a row stores, on average.
    pub fn stored_per_row(&self) -> f64 {
        self.rows.n_stored() as f64 / self.rows.n_rows().max(1) as f64
    }
}

impl<R: Layout> Samples for Examples<'_, R> {
    fn n_samples(&self) -> usize {
        self.rows.n_rows()
    }
}

/// Rows that are asked for ahead of their turn. (Not a closure: see [`dispatch`](simd::dispatch).)
#[derive(Debug)]
pub struct Ahead<'r, 'a, R> {
    examples: &'r Examples<'a, R>,
    rows: Iter<'r, usize>,
    soon: Iter<'r, usize>,
    later: Iter<'r, usize>,
}

impl<R: Layout> Iterator for Ahead<'_, '_, R> {
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

/// Owns a copy of [`Examples`].
#[derive(Debug, Default)]
pub struct Gathered<S> {
    rows: S,
    codes: Vec<u32>,
    values: Vec<f64>,
    weights: Vec<f64>,
}

/// Fills `place` with the `n` numbers of each row at `order`.
fn refill<'s, T: Copy>(place: &'s mut Vec<T>, all: &[T], order: &[usize], n: usize) -> &'s [T] {
    place.clear();
    for &row in order {
        place.extend_from_slice(&all[row * n..][..n]);
    }
    place
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
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
    use super::*;
    use crate::data::Dense;

    fn message<T>(result: Result<T>) -> String {
        result.err().map_or(String::new(), |e| e.to_string())
    }

    #[test]
    fn what_does_not_fit_the_rows_is_refused() {
        let rows = Dense::new(&[1.0, 2.0, 3.0, 4.0], 2, 2).expect("shape");
        assert_eq!(
            message(Examples::classified(rows, &[0], 2)),
            "y: expected length 2, got 1"
        );
        assert!(message(Examples::classified(rows, &[0, 2], 2)).starts_with("y[1] is 2: "));
        assert_eq!(
            message(Examples::valued(rows, &[0.0; 3], 2)),
            "y: expected length 4, got 3"
        );
        assert!(
            message(Examples::valued(rows, &[0.0, 0.0, 0.0, f64::NAN], 2)).starts_with("y[1] is")
        );
        let plain = Examples::unlabelled(rows);
        assert!(message(plain.weighted(&[1.0])).contains("expected length 2, got 1"));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(message(plain.weighted(&[0.0, bad])).starts_with("sample_weight[1] is"));
        }
        assert!(message(plain.check_features(3)).contains("features of X: expected length 3"));
    }

    #[test]
    fn a_copy_has_rows_targets_and_weights_in_the_new_order() {
        let rows = Dense::new(&[1.0, 2.0, 3.0], 3, 1).expect("shape");
        let mut store = Gathered::default();
        let plain = Examples::unlabelled(rows);
        let plain = plain.gather(&[2, 0], &mut store);
        assert!(matches!(plain.targets(), Targets::None));
        assert_eq!(plain.rows().row(0), [3.0]);
        let classes = Examples::classified(rows, &[0, 1, 2], 5).expect("valid");
        let classes = classes.weighted(&[4.0, 5.0, 6.0]).expect("valid");
        let classes = classes.gather(&[2, 0], &mut store);
        assert_eq!(classes.classes(5).expect("classes"), [2, 0]);
        assert_eq!((classes.weight(0), classes.weight(1)), (6.0, 4.0));
        let values = Examples::valued(rows, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).expect("valid");
        let values = values.gather(&[2, 0, 1], &mut store);
        assert_eq!(values.weight(1), 1.0);
        assert_eq!(
            values.values(2).expect("values"),
            [5.0, 6.0, 1.0, 2.0, 3.0, 4.0]
        );
    }

    #[test]
    fn targets_are_what_the_learner_asks_for() {
        let rows = Dense::new(&[1.0, 2.0], 2, 1).expect("shape");
        let classes = Examples::classified(rows, &[0, 1], 2).expect("valid");
        assert_eq!(classes.classes(2).expect("classes"), [0, 1]);
        assert!(message(classes.classes(1)).contains("classes of y"));
        assert!(message(classes.values(1)).contains("not numbers"));
        let values = Examples::valued(rows, &[5.0, 6.0], 1).expect("valid");
        assert_eq!(values.values(1).expect("values"), [5.0, 6.0]);
        assert!(message(values.values(2)).contains("columns of y"));
        assert!(message(values.classes(2)).contains("not classes"));
        assert_eq!(values.weight(1), 1.0);
        let weighted = values.weighted(&[0.5, 0.0]).expect("valid");
        assert_eq!(weighted.weight(0), 0.5);
    }
}
