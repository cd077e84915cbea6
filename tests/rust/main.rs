//! Properties of the core as its users see it, one module a subject.

mod laws;
mod pegasos;
mod rows;
mod sets;
