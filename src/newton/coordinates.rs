//! The parameters of one training set, and those that all training sets share.
//!
//! Passes over the rows see each row as u = (x − c, 1) with a common centre c, and shared parameters
//! θ = (γ, δ): z = ⟨γ, x − c⟩ + δ. The model of a training set has parameters φ = (β, b) of its own:
//! behind a scaler with shift s and scale r, and with an intercept that is a feature of constant value
//! v (1 if it is not penalised), z = ⟨β, (x − s)∘r⟩ + vb. Both are the same function for θ = Mφ:
//!
//! γ = r∘β,  δ = vb − ⟨γ, s − c⟩.
//!
//! Gradients and Hessians in φ are Mᵀg and MᵀHM; the penalty is λ‖β‖², with b if it is penalised.

use crate::linalg::{Mat, MatRef};
use crate::scaling::{FoldScaling, Scaling};
use crate::{Resampling, Result};

/// What the intercept of a model is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Intercept {
    /// There is none.
    None,
    /// A parameter without a penalty.
    Free,
    /// The coefficient of a feature of this constant value, penalised like the others, as in LIBLINEAR.
    Penalised(f64),
}

/// The map from the parameters of a training set to the shared ones.
#[derive(Clone, Debug)]
pub(crate) struct Coordinates {
    /// r.
    scale: Option<Vec<f64>>,
    /// s − c.
    shift: Vec<f64>,
    intercept: Intercept,
}

impl Coordinates {
    /// For rows with a centre, behind a scaler if there is one.
    pub(crate) fn new(centre: &[f64], scaling: Option<Scaling<'_>>, intercept: Intercept) -> Self {
        let shift = scaling.and_then(|scaling| scaling.shift);
        let shift = match shift {
            None => centre.iter().map(|c| -c).collect(),
            Some(shift) => shift.iter().zip(centre).map(|(s, c)| s - c).collect(),
        };
        Self {
            scale: scaling.map(|scaling| scaling.scale.to_vec()),
            shift,
            intercept,
        }
    }

    /// Those of all rows, then those of each fold; or one for all if there is no scaling.
    pub(crate) fn of_all(
        centre: &[f64],
        scaling: Option<&FoldScaling>,
        folds: &dyn Resampling,
        intercept: Intercept,
    ) -> Result<Vec<Self>> {
        let Some(scaling) = scaling else {
            return Ok(vec![Self::new(centre, None, intercept)]);
        };
        scaling.check(folds.n_splits(), centre.len())?;
        let of_folds = (0..folds.n_splits()).map(|fold| scaling.fold(fold));
        let all = std::iter::once(scaling.all_rows()).chain(of_folds);
        Ok(all
            .map(|own| Self::new(centre, Some(own), intercept))
            .collect())
    }

    fn n_features(&self) -> usize {
        self.shift.len()
    }

    /// The number of parameters of the training set.
    pub(crate) fn n_own(&self) -> usize {
        self.n_features() + usize::from(self.intercept != Intercept::None)
    }

    /// v.
    fn intercept_value(&self) -> f64 {
        match self.intercept {
            Intercept::Penalised(value) => value,
            Intercept::None | Intercept::Free => 1.0,
        }
    }

    fn scale(&self, feature: usize) -> f64 {
        self.scale.as_ref().map_or(1.0, |scale| scale[feature])
    }

    /// Whether a parameter is penalised.
    pub(crate) fn is_penalised(&self, own: usize) -> bool {
        own < self.n_features() || self.intercept != Intercept::Free
    }

    /// θ of φ.
    pub(crate) fn to_shared(&self, own: &[f64]) -> Vec<f64> {
        let p = self.n_features();
        let mut shared: Vec<f64> = (0..p).map(|j| self.scale(j) * own[j]).collect();
        let shifted: f64 = shared.iter().zip(&self.shift).map(|(g, s)| g * s).sum();
        shared.push(self.intercept(own) - shifted);
        shared
    }

    /// The intercept of φ: vb, or 0 if there is none.
    pub(crate) fn intercept(&self, own: &[f64]) -> f64 {
        own.get(self.n_features())
            .map_or(0.0, |b| b * self.intercept_value())
    }

    /// φ of θ; without an intercept, δ is not taken over.
    pub(crate) fn to_own(&self, shared: &[f64]) -> Vec<f64> {
        let p = self.n_features();
        let mut own: Vec<f64> = (0..p).map(|j| shared[j] / self.scale(j)).collect();
        if self.intercept != Intercept::None {
            let shifted: f64 = (0..p).map(|j| shared[j] * self.shift[j]).sum();
            own.push((shared[p] + shifted) / self.intercept_value());
        }
        own
    }

    /// Mᵀg.
    pub(crate) fn gradient(&self, shared: &[f64]) -> Vec<f64> {
        let p = self.n_features();
        let last = shared[p];
        let mut own: Vec<f64> = (0..p)
            .map(|j| self.scale(j) * (shared[j] - self.shift[j] * last))
            .collect();
        if self.intercept != Intercept::None {
            own.push(self.intercept_value() * last);
        }
        own
    }

    /// Magnitudes of the terms of Mᵀg, from those of the terms of g.
    pub(crate) fn magnitude(&self, shared: &[f64]) -> Vec<f64> {
        let p = self.n_features();
        let last = shared[p];
        let mut own: Vec<f64> = (0..p)
            .map(|j| self.scale(j).abs() * (shared[j] + self.shift[j].abs() * last))
            .collect();
        if self.intercept != Intercept::None {
            own.push(self.intercept_value().abs() * last);
        }
        own
    }

    /// The diagonal of MᵀHM + λI on the penalised parameters, from Σ w u and Σ w u².
    pub(crate) fn hessian_diagonal(&self, sums: &[f64], squares: &[f64], penalty: f64) -> Vec<f64> {
        let p = self.n_features();
        let entry = |j: usize| {
            let own = if j < p {
                let shift = self.shift[j];
                let centred = squares[j] - 2.0 * shift * sums[j] + shift * shift * sums[p];
                self.scale(j).powi(2) * centred
            } else {
                self.intercept_value().powi(2) * sums[p]
            };
            own + if self.is_penalised(j) { penalty } else { 0.0 }
        };
        (0..self.n_own()).map(entry).collect()
    }

    /// MᵀHM + λI on the penalised parameters; lower triangles.
    pub(crate) fn hessian(&self, shared: MatRef<'_, f64>, penalty: f64) -> Mat<f64> {
        let p = self.n_features();
        let (corner, value) = (shared[(p, p)], self.intercept_value());
        let column = |j: usize| shared[(p, j)];
        Mat::from_fn(self.n_own(), self.n_own(), |i, j| {
            if i < j {
                return 0.0;
            }
            let entry = if i == p && j == p {
                value * value * corner
            } else if i == p {
                value * self.scale(j) * (column(j) - corner * self.shift[j])
            } else {
                let (si, sj) = (self.shift[i], self.shift[j]);
                let centred = shared[(i, j)] - column(i) * sj - si * column(j) + corner * si * sj;
                self.scale(i) * self.scale(j) * centred
            };
            if i == j && self.is_penalised(i) {
                entry + penalty
            } else {
                entry
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    const CENTRE: [f64; 2] = [1.0, -2.0];

    fn all() -> Vec<Coordinates> {
        let (shift, scale) = ([0.5, 3.0], [2.0, 0.25]);
        let scalings = [
            None,
            Some(Scaling {
                shift: None,
                scale: &scale,
            }),
            Some(Scaling {
                shift: Some(&shift),
                scale: &scale,
            }),
        ];
        let intercepts = [Intercept::None, Intercept::Free, Intercept::Penalised(3.0)];
        scalings
            .iter()
            .flat_map(|scaling| intercepts.map(|kind| Coordinates::new(&CENTRE, *scaling, kind)))
            .collect()
    }

    /// M, column by column.
    fn matrix(coordinates: &Coordinates) -> Mat<f64> {
        let n = coordinates.n_own();
        let mut found = Mat::zeros(3, n);
        for j in 0..n {
            let own: Vec<f64> = (0..n).map(|i| f64::from(i == j)).collect();
            let shared = coordinates.to_shared(&own);
            (0..3).for_each(|i| found[(i, j)] = shared[i]);
        }
        found
    }

    #[test]
    fn both_parameters_are_one_function() {
        let x = [0.7, 1.9];
        let [r, s] = [[2.0, 0.25], [0.5, 3.0]];
        let coordinates = &all()[7];
        let own = [0.3, -1.1, 0.8];
        let shared = coordinates.to_shared(&own);
        let scaled: f64 = (0..2).map(|j| own[j] * (x[j] - s[j]) * r[j]).sum();
        let centred: f64 = (0..2).map(|j| shared[j] * (x[j] - CENTRE[j])).sum();
        assert!((scaled + own[2] - centred - shared[2]).abs() < 1e-14);
    }

    #[test]
    fn maps_are_inverse_and_derivatives_are_those_of_the_map() {
        let hessian = Mat::from_fn(3, 3, |i, j| 1.0 / (1.0 + (i + j) as f64));
        let gradient = [0.4, -0.2, 1.5];
        for coordinates in all() {
            let n = coordinates.n_own();
            let own: Vec<f64> = (0..n).map(|j| 0.5 + j as f64).collect();
            let shared = coordinates.to_shared(&own);
            for (found, expected) in coordinates.to_own(&shared).iter().zip(&own) {
                assert!((found - expected).abs() < 1e-14);
            }
            let m = matrix(&coordinates);
            let column = Mat::from_fn(3, 1, |i, _| gradient[i]);
            let expected = product(m.transpose(), column.as_ref());
            for (j, found) in coordinates.gradient(&gradient).iter().enumerate() {
                assert!((found - expected[(j, 0)]).abs() < 1e-14);
            }
            let expected = product(
                m.transpose(),
                product(hessian.as_ref(), m.as_ref()).as_ref(),
            );
            let found = coordinates.hessian(hessian.as_ref(), 0.1);
            for j in 0..n {
                for i in j..n {
                    let penalty = f64::from(i == j && coordinates.is_penalised(i)) * 0.1;
                    assert!((found[(i, j)] - expected[(i, j)] - penalty).abs() < 1e-13);
                }
            }
        }
    }
}
