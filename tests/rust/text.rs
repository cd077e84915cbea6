//! Words and n-grams against a slow twin.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used
)] // small data

use std::collections::{BTreeMap, BTreeSet};

use onefold::Monitor;
use onefold::text::{
    Characters, CountRows, WordCounts, Words, count_words, distinct_characters, select, statistics,
};

const DOCUMENTS: [&str; 5] = [
    "The cat. THE dog",
    "",
    "a bÉ_é! the",
    "cat the cat the cat",
    "x",
];

fn words(ngram_range: (usize, usize)) -> Words {
    Words {
        characters: Characters::new(&['É', 'é'], &["é", "é"], &[true, true]).unwrap(),
        lowercase: true,
        stop_words: ["dog".to_owned()].into(),
        ngram_range,
    }
}

/// The n-grams of a document, one after the other.
fn terms(document: &str, (shortest, longest): (usize, usize)) -> Vec<String> {
    let lower = document.to_lowercase();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let tokens: Vec<&str> = lower
        .split(|c| !is_word(c))
        .filter(|word| word.chars().count() > 1 && *word != "dog")
        .collect();
    (shortest..=longest)
        .flat_map(|n| tokens.windows(n).map(|words| words.join(" ")))
        .collect()
}

fn slowly(ngram_range: (usize, usize)) -> Vec<Vec<(String, i32)>> {
    let rows = DOCUMENTS.iter().map(|document| {
        let mut row: Vec<(String, i32)> = Vec::new();
        for term in terms(document, ngram_range) {
            match row.iter_mut().find(|(known, _)| *known == term) {
                Some((_, count)) => *count += 1,
                None => row.push((term, 1)),
            }
        }
        row
    });
    rows.collect()
}

fn rows(found: &WordCounts) -> Vec<Vec<(String, i32)>> {
    let rows = found.indptr.windows(2).map(|ends| {
        let range = ends[0] as usize..ends[1] as usize;
        let columns = found.indices[range.clone()].iter();
        let terms = columns.map(|&column| found.terms[column as usize].clone());
        terms.zip(found.counts[range].iter().copied()).collect()
    });
    rows.collect()
}

#[test]
fn counts_are_those_of_the_slow_twin() {
    for ngram_range in [(1, 1), (1, 2), (2, 3), (3, 3)] {
        let found = count_words(&DOCUMENTS, &words(ngram_range), &Monitor::new()).unwrap();
        assert_eq!(rows(&found), slowly(ngram_range));
        let sorted: BTreeSet<_> = found.terms.iter().cloned().collect();
        assert!(found.terms.iter().eq(&sorted));
        let n_words = found.terms.iter().map(|term| term.split(' ').count() as u8);
        assert!(n_words.eq(found.n_words.iter().copied()));
    }
}

#[test]
fn counts_do_not_depend_on_the_number_of_threads() {
    let count = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
        let pool = pool.build().unwrap();
        pool.install(|| count_words(&DOCUMENTS, &words((1, 2)), &Monitor::new()).unwrap())
    };
    assert_eq!(count(1), count(2));
    assert_eq!(count(1), count(4));
}

#[test]
fn characters_outside_of_ascii_are_listed_once() {
    let found = distinct_characters(&DOCUMENTS, &Monitor::new()).unwrap();
    assert_eq!(found, ['É', 'é']);
    assert!(Characters::new(&found, &["é"], &[true]).is_err());
    assert!(count_words(&DOCUMENTS, &words((2, 1)), &Monitor::new()).is_err());
}

#[test]
fn a_fold_takes_rows_and_columns() {
    let found = count_words(&DOCUMENTS, &words((1, 1)), &Monitor::new()).unwrap();
    assert_eq!(found.terms, ["bé_é", "cat", "the"]);
    let matrix = CountRows::new(&found.indptr, &found.indices, &found.counts, 3).unwrap();
    let monitor = Monitor::new();
    let of_rows = statistics(matrix, &[3, 2], &monitor).unwrap();
    assert_eq!(of_rows.n_rows, [1, 1, 2]);
    assert_eq!(of_rows.first, [2, 0, 1]);
    let by_key = select(matrix, &[2, 0], &[0, -1, 1], Some(&of_rows.first), &monitor).unwrap();
    assert_eq!(by_key.indptr, [0, 2, 3]);
    assert_eq!(by_key.indices, [1, 0, 1]);
    assert_eq!(by_key.counts, [1, 1, 2]);
    let by_column = select(matrix, &[2], &[0, -1, 1], None, &monitor).unwrap();
    assert_eq!(by_column.indices, [0, 1]);
    assert!(statistics(matrix, &[5], &monitor).is_err());
    assert!(select(matrix, &[0], &[0, 1], None, &monitor).is_err());
    assert!(CountRows::new(&found.indptr, &found.indices, &found.counts, 2).is_err());
    let column: BTreeMap<_, _> = found.terms.iter().zip(0..).collect();
    assert_eq!(column[&"the".to_owned()], 2);
}
