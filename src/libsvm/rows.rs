//! Rows in portions, for files larger than memory.

use std::collections::VecDeque;

use super::layout::Layout;
use super::matrix::{Matrix, Room};
use super::parse::Columns;
use super::read::{Pipeline, Sink};
use super::source::Input;
use super::{Base, Options, Precision};
use crate::{Error, Monitor, Result};

/// Rows put together in portions of the same size.
#[derive(Debug)]
struct Portions {
    n_rows: usize,
    precision: Precision,
    full: VecDeque<Matrix<'static>>,
    growing: Matrix<'static>,
}

impl Portions {
    fn close(&mut self) {
        let full = std::mem::replace(&mut self.growing, Matrix::new(Room::new(self.precision)));
        self.full.push_back(full);
    }
}

impl Sink for Portions {
    fn append(&mut self, columns: &Columns) -> Result<()> {
        let n_rows = columns.row_ends.len();
        let mut start = 0;
        while start < n_rows {
            let end = n_rows.min(start + self.n_rows - self.growing.n_rows());
            self.growing.append_rows(columns, start..end);
            start = end;
            if self.growing.n_rows() == self.n_rows {
                self.close();
            }
        }
        Ok(())
    }
}

/// Reads files one after another, as if they were one, in portions of rows.
pub struct RowReader {
    /// The files that were not opened yet, last one first.
    inputs: Vec<Input>,
    options: Options,
    layout: Layout,
    current: Option<Pipeline>,
    portions: Portions,
}

impl std::fmt::Debug for RowReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowReader")
            .field("inputs", &self.inputs)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl RowReader {
    /// Prepares to read portions of `n_rows` rows.
    ///
    /// All portions have the same features. Where `options` leave open how many there are, or the
    /// index of the first, the files are read once in advance to find out.
    pub fn new(
        mut inputs: Vec<Input>,
        n_rows: usize,
        options: &Options,
        monitor: &Monitor,
    ) -> Result<Self> {
        if n_rows == 0 {
            return Err(Error::Parameter {
                name: "rows_per_block",
                rule: "at least 1",
                value: n_rows.to_string(),
            });
        }
        let options = options.resolved()?;
        let layout = match options.n_features {
            Some(n_features) if options.base != Base::Auto => Layout {
                is_one_based: options.base == Base::One,
                n_features,
            },
            _ => survey(&inputs, &options, monitor)?,
        };
        inputs.reverse();
        Ok(Self {
            inputs,
            layout,
            current: None,
            portions: Portions {
                n_rows,
                precision: options.precision,
                full: VecDeque::new(),
                growing: Matrix::new(Room::new(options.precision)),
            },
            options,
        })
    }

    /// How many features every portion has.
    pub fn n_features(&self) -> u64 {
        self.layout.n_features
    }

    /// The next portion, if it has been parsed already.
    pub fn ready(&mut self) -> Option<Matrix<'static>> {
        let mut matrix = self.portions.full.pop_front()?;
        matrix.finish(self.layout);
        Some(matrix)
    }

    /// The next portion, or `None` after the last.
    pub fn next(&mut self, monitor: &Monitor) -> Result<Option<Matrix<'static>>> {
        while self.portions.full.is_empty() {
            if let Some(current) = &mut self.current {
                if !current.step(&mut self.portions, monitor)? {
                    self.current = None;
                }
            } else if let Some(input) = self.inputs.pop() {
                self.current = Some(Pipeline::open(input, &self.options)?);
            } else if self.portions.growing.n_rows() > 0 {
                self.portions.close();
            } else {
                break;
            }
        }
        Ok(self.ready())
    }
}

/// Reads files only to learn their layout.
fn survey(inputs: &[Input], options: &Options, monitor: &Monitor) -> Result<Layout> {
    let mut tallies = Vec::new();
    for input in inputs {
        let Input::Path(path) = input else {
            return Err(Error::Parameter {
                name: "n_features",
                rule: "given, and zero_based True or False, to read an open file in blocks",
                value: format!("{:?}", options.n_features),
            });
        };
        let again = Input::Path(path.clone());
        tallies.push(Pipeline::open(again, options)?.drain(&mut (), monitor)?);
    }
    Layout::new(&tallies, options)
}
