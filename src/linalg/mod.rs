//! Dense linear algebra: everything that names faer, and what it lacks.

mod start_vector;

pub(crate) use start_vector::start_vector;
