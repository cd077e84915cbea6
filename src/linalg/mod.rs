//! Dense linear algebra: everything that names faer, and what it lacks.

mod lanczos;
mod start_vector;

pub(crate) use lanczos::extreme_eigenvalues;
pub(crate) use start_vector::start_vector;
