//! Rows together with what is to be learnt from them.

use super::{Row, Rows, Samples};
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

impl<'a, R: Rows> Examples<'a, R> {
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

    /// Copies the examples at `order`, in that order; `None` if there is not enough memory.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn gather(&self, order: &[usize]) -> Option<Gathered<R>> {
        let codes = |codes: &[u32]| order.iter().map(|&row| codes[row]).collect();
        let numbers = |values: &[f64], n: usize| {
            let rows = order.iter().map(|&row| &values[row * n..][..n]);
            rows.flatten().copied().collect()
        };
        Some(Gathered {
            rows: self.rows.gather(order)?,
            targets: match self.targets {
                Targets::None => Owned::None,
                Targets::Classes {
                    codes: c,
                    n_classes,
                } => Owned::Classes(codes(c), n_classes),
                Targets::Values { values, n_outputs } => {
                    Owned::Values(numbers(values, n_outputs), n_outputs)
                }
            },
            weights: self.weights.map(|weights| numbers(weights, 1)),
        })
    }

    /// How many values a row stores, on average.
    pub fn stored_per_row(&self) -> f64 {
        self.rows.n_stored() as f64 / self.rows.n_rows().max(1) as f64
    }
}

impl<R: Rows> Samples for Examples<'_, R> {
    fn n_samples(&self) -> usize {
        self.rows.n_rows()
    }

    fn fetch(&self, rows: &[usize]) {
        let mut sum = 0.0;
        for &row in rows {
            sum += self.rows.row(row).touch() + self.weight(row);
            sum += match self.targets {
                Targets::None => 0.0,
                Targets::Classes { codes, .. } => codes[row].into(),
                Targets::Values { values, n_outputs } => values[row * n_outputs],
            };
        }
        std::hint::black_box(sum);
    }
}

/// Owns a copy of [`Examples`].
#[derive(Debug)]
pub struct Gathered<R: Rows> {
    rows: R::Store,
    targets: Owned,
    weights: Option<Vec<f64>>,
}

#[derive(Debug)]
enum Owned {
    None,
    Classes(Vec<u32>, usize),
    Values(Vec<f64>, usize),
}

impl<R: Rows> Gathered<R> {
    /// The examples.
    pub fn view(&self) -> Examples<'_, R::View<'_>> {
        Examples {
            rows: R::view(&self.rows),
            targets: match &self.targets {
                Owned::None => Targets::None,
                Owned::Classes(codes, n_classes) => Targets::Classes {
                    codes,
                    n_classes: *n_classes,
                },
                Owned::Values(values, n_outputs) => Targets::Values {
                    values,
                    n_outputs: *n_outputs,
                },
            },
            weights: self.weights.as_deref(),
        }
    }
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
        let plain = Examples::unlabelled(rows).gather(&[2, 0]).expect("memory");
        assert!(matches!(plain.view().targets(), Targets::None));
        assert_eq!(plain.view().rows().row(0), [3.0]);
        let classes = Examples::classified(rows, &[0, 1, 2], 5).expect("valid");
        let classes = classes.weighted(&[4.0, 5.0, 6.0]).expect("valid");
        let classes = classes.gather(&[2, 0]).expect("memory");
        assert_eq!(classes.view().classes(5).expect("classes"), [2, 0]);
        assert_eq!(
            (classes.view().weight(0), classes.view().weight(1)),
            (6.0, 4.0)
        );
        let values = Examples::valued(rows, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2).expect("valid");
        let values = values.gather(&[2, 0]).expect("memory");
        assert_eq!(
            values.view().values(2).expect("values"),
            [5.0, 6.0, 1.0, 2.0]
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
