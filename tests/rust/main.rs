//! Properties of the core as its users see it, one module a subject.

mod algebra;
mod densities;
mod engine;
mod kmeans;
mod laws;
mod least_squares;
mod libsvm;
mod linear;
mod merge;
mod naive_bayes;
mod pegasos;
mod rows;
mod sets;
<<<<<<< HEAD
mod svm;
=======
mod several;
>>>>>>> 055f54f (Describe model selection; test learners that walk together)
mod textbook;
mod tree;
mod virtual_cv;
