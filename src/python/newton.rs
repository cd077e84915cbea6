//! Newton's method for all folds as Python sees it.

use std::sync::Arc;

use numpy::{IntoPyArray, PyReadonlyArray2, PyReadonlyArray3};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::cross_validate::{Call, PyOutOfFold};
use super::scaling::{MapsArg, to_maps};
use crate::engine::Engine as _;
use crate::newton::{
    Accuracy, ClassWeights, GlmSpec, Intercept, LeaveOneOut, Link, Loss, Method, Newton, Penalty,
    RowStatus,
};

/// A model with a smooth convex loss.
#[pyclass(frozen, module = "onefold._core", name = "SmoothModel")]
#[derive(Debug)]
pub(super) struct PySmoothModel(GlmSpec);

/// One penalty for each model, or one for each model and training set.
#[derive(FromPyObject)]
enum PenaltiesArg<'py> {
    EachSet(PyReadonlyArray2<'py, f64>),
    One(Vec<f64>),
}

impl PenaltiesArg<'_> {
    fn penalties(self, of_mean: bool) -> Vec<Penalty> {
        match self {
            Self::EachSet(values) => {
                let rows = values.as_array();
                let rows = rows.rows().into_iter();
                rows.map(|row| Penalty::EachSet(row.to_vec())).collect()
            }
            Self::One(values) if of_mean => values.into_iter().map(Penalty::Mean).collect(),
            Self::One(values) => values.into_iter().map(Penalty::Sum).collect(),
        }
    }
}

/// None, "free", or the constant value of a feature whose coefficient is penalised.
#[derive(FromPyObject)]
pub(super) enum InterceptArg {
    Value(f64),
    Name(String),
}

pub(super) fn to_intercept(intercept: Option<InterceptArg>) -> PyResult<Intercept> {
    match intercept {
        None => Ok(Intercept::None),
        Some(InterceptArg::Value(value)) => Ok(Intercept::Penalised(value)),
        Some(InterceptArg::Name(name)) if name == "free" => Ok(Intercept::Free),
        Some(InterceptArg::Name(name)) => Err(PyValueError::new_err(format!(
            "intercept must be None, 'free' or a positive number, got {name:?}"
        ))),
    }
}

fn to_link(loss: &str, power: f64, epsilon: f64) -> PyResult<Link> {
    Ok(Link::Independent(match loss {
        "multinomial" => return Ok(Link::Multinomial),
        "logistic" => Loss::Logistic,
        "poisson" => Loss::Tweedie { power: 1.0 },
        "gamma" => Loss::Tweedie { power: 2.0 },
        "tweedie" => Loss::Tweedie { power },
        "half_squared" => Loss::HalfSquared,
        "squared_hinge" => Loss::SquaredHinge,
        "squared_epsilon_insensitive" => Loss::SquaredEpsilonInsensitive { epsilon },
        _ => {
            return Err(PyValueError::new_err(format!(
                "there is no loss {loss:?}; there are logistic, multinomial, poisson, gamma, \
                 tweedie, half_squared, squared_hinge, squared_epsilon_insensitive"
            )));
        }
    }))
}

#[pymethods]
impl PySmoothModel {
    /// Models that differ in the penalty only. `penalties` has a row of all training sets (all samples,
    /// then each fold) for each model, or one number, which is multiplied by the weight of the training
    /// set if the objective is a mean. `class_weights` are factors: training set × output × class.
    #[staticmethod]
    #[pyo3(signature = (
        loss, penalties, *, power=1.5, epsilon=0.0, intercept=None, of_mean=false, scaling=None,
        class_weights=None
    ))]
    #[allow(clippy::too_many_arguments)] // keywords in Python
    fn family(
        loss: &str,
        penalties: PenaltiesArg<'_>,
        power: f64,
        epsilon: f64,
        intercept: Option<InterceptArg>,
        of_mean: bool,
        scaling: Option<MapsArg<'_>>,
        class_weights: Option<PyReadonlyArray3<'_, f64>>,
    ) -> PyResult<Vec<Self>> {
        let class_weights =
            class_weights.map(|factors| ClassWeights::new(factors.as_array().to_owned()));
        let model = GlmSpec {
            link: to_link(loss, power, epsilon)?,
            intercept: to_intercept(intercept)?,
            penalty: Penalty::Sum(0.0),
            scaling: scaling.map(to_maps).transpose()?,
            class_weights: class_weights.transpose()?.map(Arc::new),
        };
        let penalties = penalties.penalties(of_mean).into_iter();
        let with_penalty = |penalty| GlmSpec {
            penalty,
            ..model.clone()
        };
        Ok(penalties
            .map(|penalty| Self(with_penalty(penalty)))
            .collect())
    }

    fn __repr__(&self) -> String {
        format!("SmoothModel({:?}, {:?})", self.0.link, self.0.penalty)
    }
}

fn to_method(name: &str) -> PyResult<Method> {
    let all = [Method::Hessians, Method::MatrixFree, Method::LeaveOneOut];
    let known = all.into_iter().find(|method| method.name() == name);
    known.ok_or_else(|| {
        let names = all.map(Method::name).join(", ");
        PyValueError::new_err(format!("there is no method {name:?}; there are {names}"))
    })
}

/// The attributes of the facade's `NewtonOptions`.
#[derive(FromPyObject)]
struct NewtonOptions {
    tol: f64,
    /// A relative gradient that is accepted after so many passes, and those of wide rows.
    limit: Option<(f64, f64, f64)>,
    epsilon: f64,
    method: Option<String>,
}

impl NewtonOptions {
    fn engine(&self) -> PyResult<Newton> {
        let to_accuracy = |(accepted, passes, wide_passes)| Accuracy {
            tolerance: self.tol,
            accepted,
            passes,
            wide_passes,
        };
        Ok(Newton {
            accuracy: self.limit.map_or(self.tol.into(), to_accuracy),
            epsilon: self.epsilon,
            method: self.method.as_deref().map(to_method).transpose()?,
        })
    }
}

/// The result of every model: linear predictors.
pub(super) fn cross_validate(
    py: Python<'_>,
    call: &Call<'_, '_>,
) -> PyResult<Vec<Py<PyOutOfFold>>> {
    let engine = call.options.extract::<NewtonOptions>()?.engine()?;
    let models = call.candidates.iter();
    let models: Vec<GlmSpec> = models
        .map(|model| Ok(model.cast::<PySmoothModel>()?.get().0.clone()))
        .collect::<PyResult<_>>()?;
    let models: Vec<&GlmSpec> = models.iter().collect();
    call.run(
        py,
        |job, finished| engine.run(&models, job, finished),
        |_, result| {
            let counters = result.cost.of_smooth_losses();
            PyOutOfFold::new(py, result, &counters, vec![])
        },
    )
}

/// What leaving out each row does, by name: row × output in test order. Statuses are 0 for rows that are
/// certified, 1 for those that were re-solved, 2 for those without an optimum.
pub(super) fn to_dict(py: Python<'_>, rows: LeaveOneOut) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let statuses = rows.statuses.mapv(|status| match status {
        RowStatus::Certified => 0_u8,
        RowStatus::Resolved => 1,
        RowStatus::Undetermined => 2,
    });
    dict.set_item("statuses", statuses.into_pyarray(py))?;
    for (name, values) in [
        ("bounds", rows.bounds),
        ("fitted", rows.fitted),
        ("leverages", rows.leverages),
        ("influence", rows.influence),
    ] {
        dict.set_item(name, values.into_pyarray(py))?;
    }
    Ok(dict)
}
