//! Properties of the core as its users see it, one module a subject.

mod engine;
mod laws;
mod linear;
mod pegasos;
mod rows;
mod sets;
mod textbook;
mod tree;
