//! Texts as counts of words: read once for all folds.
//!
//! # Problem
//! A vectorizer in a pipeline tokenises every document once per fold, although a fold
//! changes only which words are known and how often they occur in its training documents.
//!
//! # Method
//! [`count_words`] reads all documents once and returns a CSR matrix of counts, its
//! columns sorted by word. Within a row, words stand in the order of their first occurrence: that
//! is the order in which scikit-learn stores and sums a training row, so that a fold's rows have its
//! bits. [`statistics`] of the training rows then say which columns a fold keeps, and [`select`]
//! takes rows and columns.
//!
//! # Unicode
//! The core decides nothing about characters outside of ASCII: [`distinct_characters`]
//! lists those that occur, and the caller says what each of them becomes and whether it is part of a
//! word. So the tokens are those of the caller's tables, whatever version of Unicode these follow.
//!
//! # Cost
//! One pass over the bytes, one hash of every token, one sort of the distinct words.

mod counts;
mod fold;
mod tokens;

pub use counts::{WordCounts, count_words};
pub use fold::{CountRows, Selection, Statistics, select, statistics};
pub use tokens::{Characters, Words, distinct_characters};
