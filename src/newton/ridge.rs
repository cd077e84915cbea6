//! The penalty of one training set.

use super::Intercept;
use crate::linalg::Mat;
use crate::linear::FoldMap;

/// ½λ‖β‖², of all parameters of each predictor but a free intercept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ridge {
    pub(super) lambda: f64,
    /// Parameters of one predictor, and how many of them are penalised.
    n_params: usize,
    n_penalised: usize,
}

impl Ridge {
    /// λ of a training set whose rows a map maps.
    pub(super) fn new(lambda: f64, map: &FoldMap, intercept: Intercept) -> Self {
        let n_params = map.n_params();
        Self {
            lambda,
            n_params,
            n_penalised: n_params - usize::from(intercept == Intercept::Free),
        }
    }

    /// λ of a parameter, of any predictor.
    fn lambda_of(&self, param: usize) -> f64 {
        if param % self.n_params < self.n_penalised {
            self.lambda
        } else {
            0.0
        }
    }

    /// The gradient.
    pub(super) fn gradient(&self, params: &[f64]) -> impl Iterator<Item = f64> {
        let params = params.iter().enumerate();
        params.map(|(j, param)| self.lambda_of(j) * param)
    }

    /// Adds the gradient.
    pub(super) fn add_gradient(&self, params: &[f64], gradient: &mut [f64]) {
        let predictors = params.chunks_exact(self.n_params);
        for (params, gradient) in predictors.zip(gradient.chunks_exact_mut(self.n_params)) {
            let penalised = gradient.iter_mut().zip(params).take(self.n_penalised);
            penalised.for_each(|(gradient, param)| *gradient += self.lambda * param);
        }
    }

    /// λ⟨a, b⟩ of the penalised parameters.
    pub(super) fn product(&self, a: &[f64], b: &[f64]) -> f64 {
        self.gradient(a).zip(b).map(|(a, b)| a * b).sum()
    }

    /// Adds the Hessian, of one predictor.
    pub(super) fn add_hessian(&self, hessian: &mut Mat<f64>) {
        for j in 0..self.n_penalised {
            hessian[(j, j)] += self.lambda;
        }
    }

    /// Adds the diagonal of the Hessian, of one predictor.
    pub(super) fn add_diagonal(&self, diagonal: &mut [f64]) {
        let penalised = diagonal.iter_mut().take(self.n_penalised);
        penalised.for_each(|value| *value += self.lambda);
    }
}
