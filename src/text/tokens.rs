//! Documents → words: maximal runs of two or more word characters, as scikit-learn's default
//! pattern `\b\w\w+\b` has them.

use std::collections::{BTreeSet, HashSet};

use rayon::prelude::*;

use crate::{Error, Monitor, Result};

/// Documents between two looks at the monitor.
pub(super) const DOCUMENTS_PER_CHECK: usize = 64;

/// What becomes of one character, and which of the results are part of words.
type Replacement = Vec<(char, bool)>;

/// How characters outside of ASCII are read.
#[derive(Clone, Debug, Default)]
pub struct Characters {
    /// The position of a character's replacement plus 1, by code point; 0 if there is none.
    positions: Vec<u32>,
    replacements: Vec<Replacement>,
}

impl Characters {
    /// `replacements` has one text for each of `characters`, and `is_word` one flag for each
    /// character of the replacements.
    pub fn new(characters: &[char], replacements: &[&str], is_word: &[bool]) -> Result<Self> {
        let n_replaced = replacements.iter().map(|text| text.chars().count()).sum();
        for (what, expected, found) in [
            ("replacements", characters.len(), replacements.len()),
            ("is_word", n_replaced, is_word.len()),
        ] {
            if expected != found {
                return Err(Error::Shape {
                    what,
                    expected,
                    found,
                });
            }
        }
        let largest = characters.iter().max().map_or(0, |&c| c as usize);
        let mut positions = vec![0; largest + 1];
        let mut flags = is_word.iter();
        let replacements = replacements
            .iter()
            .map(|text| text.chars().zip(flags.by_ref().copied()).collect())
            .collect();
        for (position, &character) in (1..).zip(characters) {
            positions[character as usize] = position;
        }
        Ok(Self {
            positions,
            replacements,
        })
    }

    /// What a character becomes; one that is not in the table ends a word.
    fn replacement(&self, character: char) -> &[(char, bool)] {
        const SEPARATOR: &[(char, bool)] = &[(' ', false)];
        match self.positions.get(character as usize) {
            None | Some(0) => SEPARATOR,
            Some(&position) => &self.replacements[position as usize - 1],
        }
    }
}

/// How documents are read.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// Characters outside of ASCII.
    pub characters: Characters,
    /// Whether `A` to `Z` become lower case.
    pub lowercase: bool,
    /// Words that are left out before n-grams are formed.
    pub stop_words: HashSet<String>,
    /// The shortest and the longest n-grams, in words.
    pub ngram_range: (usize, usize),
}

impl Words {
    /// Calls `use_word` with every run of two or more word characters. `word` is its buffer.
    pub(super) fn for_each_word(
        &self,
        document: &str,
        word: &mut String,
        mut use_word: impl FnMut(&str),
    ) {
        word.clear();
        let mut n_characters = 0;
        let mut end = |word: &mut String, n_characters: &mut usize| {
            if *n_characters > 1 {
                use_word(word);
            }
            word.clear();
            *n_characters = 0;
        };
        for character in document.chars() {
            if character.is_ascii_alphanumeric() || character == '_' {
                word.push(if self.lowercase {
                    character.to_ascii_lowercase()
                } else {
                    character
                });
                n_characters += 1;
            } else if character.is_ascii() {
                end(word, &mut n_characters);
            } else {
                for &(replaced, is_word) in self.characters.replacement(character) {
                    if is_word {
                        word.push(replaced);
                        n_characters += 1;
                    } else {
                        end(word, &mut n_characters);
                    }
                }
            }
        }
        end(word, &mut n_characters);
    }
}

/// The characters outside of ASCII that occur in some document, in the order of code points.
pub fn distinct_characters(documents: &[&str], monitor: &Monitor) -> Result<Vec<char>> {
    let found = documents
        .par_chunks(DOCUMENTS_PER_CHECK)
        .map(|chunk| {
            monitor.check()?;
            let others = chunk.iter().filter(|text| !text.is_ascii());
            let mut recent = '\0';
            let mut found = HashSet::new();
            for character in others.flat_map(|text| text.chars()) {
                if !character.is_ascii() && character != recent {
                    recent = character;
                    found.insert(character);
                }
            }
            Ok(found.into_iter().collect::<BTreeSet<_>>())
        })
        .try_reduce(BTreeSet::new, |mut all, some| {
            all.extend(some);
            Ok(all)
        })?;
    Ok(found.into_iter().collect())
}
