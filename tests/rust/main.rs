//! Properties of the core as its users see it, one module per subject.

mod absent_features;
mod algebra;
mod candidates;
mod clouds;
mod densities;
mod engine;
mod every_learner;
mod fold_models;
mod forest;
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
mod multinomial;
mod naive_bayes;
mod newton;
mod one_call;
mod path;
mod pegasos;
mod placement;
mod rescaling;
#[cfg(feature = "internals")]
mod rows;
mod sets;
mod sparse_logistic;
mod stored;
#[cfg(feature = "internals")]
mod svm;
mod svm_kfold;
mod text;
mod textbook;
mod threads;
mod tree;
mod virtual_cv;
