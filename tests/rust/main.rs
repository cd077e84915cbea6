//! Properties of the core as its users see it, one module a subject.

mod algebra;
mod densities;
mod engine;
mod few;
mod kmeans;
mod laws;
mod least_squares;
mod libsvm;
mod linear;
mod merge;
mod naive_bayes;
mod narrow;
mod pegasos;
mod rows;
mod sets;
mod several;
mod svm;
mod svm_kfold;
mod textbook;
mod tree;
mod virtual_cv;
