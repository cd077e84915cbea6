//! Counts of the words and n-grams of all documents.

#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // checked by `join`

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use rayon::prelude::*;

use super::tokens::{DOCUMENTS_PER_CHECK, Words};
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// A CSR matrix of counts, document × term.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WordCounts {
    /// Where each row begins, and the last one ends.
    pub indptr: Vec<i64>,
    /// Columns; those of a row in the order of first occurrence.
    pub indices: Vec<i32>,
    /// How often the term occurs in the document.
    pub counts: Vec<i32>,
    /// The term of each column, in the order of code points; the words of an n-gram are joined by
    /// spaces.
    pub terms: Vec<String>,
    /// The number of words of each term.
    pub n_words: Vec<u8>,
}

/// Counts the terms of all documents, in parallel over documents.
///
/// The result does not depend on the number of threads.
pub fn count_words(documents: &[&str], words: &Words, monitor: &Monitor) -> Result<WordCounts> {
    let (shortest, longest) = words.ngram_range;
    if shortest == 0 || shortest > longest || longest > usize::from(u8::MAX) {
        return Err(Error::Parameter {
            name: "ngram_range",
            rule: "two whole numbers, the first not larger than the second, from 1 to 255",
            value: format!("({shortest}, {longest})"),
        });
    }
    let chunk = documents.len().div_ceil(rayon::current_num_threads());
    let parts = documents
        .par_chunks(chunk.max(1))
        .map(|documents| Part::count(documents, words, monitor))
        .collect::<Result<Vec<_>>>()?;
    join(&parts)
}

const NONE: u32 = u32::MAX;

/// A term of one part: the n-gram before its last word, or [`NONE`], and that word.
#[derive(Clone, Copy, Debug)]
struct Term {
    before: u32,
    word: u32,
    n_words: u8,
}

/// The counts of some documents, with terms in the order of first occurrence.
#[derive(Default)]
struct Part {
    /// The words, one after the other, and where each begins.
    text: String,
    starts: Vec<usize>,
    is_stop_word: Vec<bool>,
    /// First the number of each word, then that of each n-gram.
    terms: Vec<Term>,
    lengths: Vec<u32>,
    columns: Vec<u32>,
    counts: Vec<u32>,
}

/// Numbers words and n-grams.
#[derive(Default)]
struct Numbers {
    words: HashMap<Box<str>, u32, BuildHasherDefault<Fx>>,
    /// The term of a word alone, by the number of the word.
    unigrams: Vec<u32>,
    ngrams: HashMap<(u32, u32), u32, BuildHasherDefault<Fx>>,
    /// Where each term stands in the row that is being counted, if it does.
    slots: Vec<usize>,
}

impl Part {
    fn count(documents: &[&str], words: &Words, monitor: &Monitor) -> Result<Self> {
        let (shortest, longest) = words.ngram_range;
        let mut part = Self::default();
        let mut numbers = Numbers::default();
        let mut buffer = String::new();
        let mut tokens: Vec<u32> = Vec::new();
        let mut ngrams: Vec<u32> = Vec::new();
        let mut n_checked = 0;
        for (number, document) in documents.iter().enumerate() {
            if number % DOCUMENTS_PER_CHECK == 0 {
                monitor.check()?;
                if part.columns.len() >= n_checked {
                    n_checked = 2 * part.columns.len();
                    let what = format_args!("columns and counts of {} documents", documents.len());
                    memory::check::<u64>(what, n_checked as u64)?;
                }
            }
            let start = part.columns.len();
            tokens.clear();
            words.for_each_word(document, &mut buffer, |word| {
                let word = part.word(&mut numbers, word, words);
                if !part.is_stop_word[word as usize] {
                    tokens.push(word);
                }
            });
            ngrams.clear();
            ngrams.extend(tokens.iter().map(|&word| numbers.unigrams[word as usize]));
            for n in 1..=longest.min(tokens.len()) {
                if n > 1 {
                    ngrams.truncate(tokens.len() - n + 1);
                    for (ngram, &word) in ngrams.iter_mut().zip(&tokens[n - 1..]) {
                        *ngram = part.ngram(&mut numbers, *ngram, word);
                    }
                }
                if n >= shortest {
                    for &term in &ngrams {
                        part.add(&mut numbers, start, term);
                    }
                }
            }
            part.lengths.push((part.columns.len() - start) as u32);
        }
        Ok(part)
    }

    /// The number of a word.
    fn word(&mut self, numbers: &mut Numbers, word: &str, words: &Words) -> u32 {
        if let Some(&known) = numbers.words.get(word) {
            return known;
        }
        let new = self.starts.len() as u32;
        self.starts.push(self.text.len());
        self.text.push_str(word);
        self.is_stop_word.push(words.stop_words.contains(word));
        numbers.words.insert(word.into(), new);
        let term = self.push_term(numbers, NONE, new, 1);
        numbers.unigrams.push(term);
        new
    }

    /// The number of the n-gram that is `before` and one more word.
    fn ngram(&mut self, numbers: &mut Numbers, before: u32, word: u32) -> u32 {
        if let Some(&known) = numbers.ngrams.get(&(before, word)) {
            return known;
        }
        let n_words = self.terms[before as usize].n_words + 1;
        let new = self.push_term(numbers, before, word, n_words);
        numbers.ngrams.insert((before, word), new);
        new
    }

    fn push_term(&mut self, numbers: &mut Numbers, before: u32, word: u32, n_words: u8) -> u32 {
        let new = self.terms.len() as u32;
        self.terms.push(Term {
            before,
            word,
            n_words,
        });
        numbers.slots.push(usize::MAX);
        new
    }

    /// Counts a term of the row that begins at `start`.
    fn add(&mut self, numbers: &mut Numbers, start: usize, term: u32) {
        let slot = &mut numbers.slots[term as usize];
        if (start..self.columns.len()).contains(slot) {
            self.counts[*slot] += 1;
        } else {
            *slot = self.columns.len();
            self.columns.push(term);
            self.counts.push(1);
        }
    }

    fn word_text(&self, word: u32) -> &str {
        let word = word as usize;
        let end = self.starts.get(word + 1).copied();
        &self.text[self.starts[word]..end.unwrap_or(self.text.len())]
    }

    /// Writes the text of a term.
    fn write(&self, term: Term, text: &mut String) {
        if term.before != NONE {
            self.write(self.terms[term.before as usize], text);
            text.push(' ');
        }
        text.push_str(self.word_text(term.word));
    }

    /// The terms that are counted, each with its text.
    fn counted(&self) -> Vec<(u32, String)> {
        let mut is_counted = vec![false; self.terms.len()];
        for &column in &self.columns {
            is_counted[column as usize] = true;
        }
        let terms = (0..).zip(&self.terms).zip(is_counted);
        terms
            .filter(|&(_, is_counted)| is_counted)
            .map(|((number, &term), _)| {
                let mut text = String::new();
                self.write(term, &mut text);
                (number, text)
            })
            .collect()
    }
}

/// Gives the terms of all parts common numbers in the order of their texts.
fn join(parts: &[Part]) -> Result<WordCounts> {
    let counted: Vec<_> = parts.par_iter().map(Part::counted).collect();
    let mut all: Vec<(u64, &str, u32, u32)> = (0..)
        .zip(&counted)
        .flat_map(|(part, terms)| {
            let terms = terms.iter();
            terms.map(move |(number, text)| (prefix(text), text.as_str(), part, *number))
        })
        .collect();
    if i32::try_from(all.len()).is_err() {
        return Err(Error::Parameter {
            name: "documents",
            rule: "texts of less than 2^31 different terms",
            value: format!("{} terms", all.len()),
        });
    }
    all.par_sort_unstable();
    let n_stored: usize = parts.iter().map(|part| part.columns.len()).sum();
    let n_rows: usize = parts.iter().map(|part| part.lengths.len()).sum();
    let n_values = n_stored + n_rows + all.len(); // of eight bytes at most
    memory::check::<u64>(
        format_args!("counts of words in {n_rows} documents"),
        n_values as u64,
    )?;
    let mut columns: Vec<Vec<i32>> = parts
        .iter()
        .map(|part| vec![-1; part.terms.len()])
        .collect();
    let mut joined = WordCounts::default();
    for (_, text, part, number) in all {
        let (part, number) = (part as usize, number as usize);
        if joined.terms.last().is_none_or(|last| last != text) {
            joined.terms.push(text.to_owned());
            joined.n_words.push(parts[part].terms[number].n_words);
        }
        columns[part][number] = joined.terms.len() as i32 - 1;
    }
    drop(counted);
    joined.indptr.push(0);
    for (part, columns) in parts.iter().zip(columns) {
        for &length in &part.lengths {
            let end = joined.indptr.last().copied().unwrap_or(0);
            joined.indptr.push(end + i64::from(length));
        }
        let indices = part.columns.iter().map(|&term| columns[term as usize]);
        joined.indices.extend(indices);
        joined
            .counts
            .extend(part.counts.iter().map(|&count| count as i32));
    }
    Ok(joined)
}

/// The first bytes of a text as a number that is in the same order.
fn prefix(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let n = text.len().min(8);
    bytes[..n].copy_from_slice(&text.as_bytes()[..n]);
    u64::from_be_bytes(bytes)
}

/// A quick hash of words and pairs of numbers; nothing depends on its order.
#[derive(Default)]
struct Fx(u64);

impl Fx {
    fn mix(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Fx {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        // The table reads the highest and the lowest bits.
        self.0 ^ (self.0 >> 29)
    }
}
