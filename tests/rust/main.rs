//! Properties of the core as its users see it, one module a subject.

mod rows;
