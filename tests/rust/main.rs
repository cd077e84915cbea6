//! Properties of the core as its users see it, one module per subject.

mod absent_features;
mod algebra;
mod candidates;
mod densities;
mod engine;
mod every_learner;
mod fold_models;
#[cfg(feature = "libsvm")]
mod fuzz;
mod growing;
mod kmeans;
mod laws;
mod leaf_block;
mod least_squares;
#[cfg(feature = "libsvm")]
mod libsvm;
mod linear;
mod merge;
mod naive_bayes;
mod newton;
mod one_call;
mod pegasos;
mod placement;
mod rescaling;
mod rows;
mod sets;
mod stored;
mod svm;
mod svm_kfold;
mod text;
mod textbook;
mod tree;
mod virtual_cv;
