//! The pipeline from text to rows.

use rayon::prelude::*;

use super::Options;
use super::layout::{Layout, Tally};
use super::matrix::{Matrix, Room};
use super::parse::{Columns, Fault, Rules, parse};
use super::source::{Blocks, Input};
use crate::{Error, Monitor, Result};

/// How many blocks a thread gets at a time: enough to even out that some take longer.
const BLOCKS_PER_THREAD: usize = 8;

/// Where rows go, in the order of the file.
pub(super) trait Sink: Send {
    /// Takes the rows of the next block.
    fn append(&mut self, columns: &Columns) -> Result<()>;

    /// Prepares for the rest, when the rows so far are about this share of all.
    fn reserve(&mut self, _share: f64) {}
}

/// For those who only want the [`Tally`].
impl Sink for () {
    fn append(&mut self, _: &Columns) -> Result<()> {
        Ok(())
    }
}

/// A block, parsed up to its end or its first fault.
#[derive(Default)]
struct Parsed {
    columns: Columns,
    fault: Option<Fault>,
}

/// Buffers, of which the first `n` are in use: the others keep their memory for later.
#[derive(Default)]
struct Batch<T> {
    buffers: Vec<T>,
    n: usize,
}

impl<T: Default> Batch<T> {
    fn push(&mut self) -> &mut T {
        if self.n == self.buffers.len() {
            self.buffers.push(T::default());
        }
        self.n += 1;
        &mut self.buffers[self.n - 1]
    }

    fn in_use(&self) -> &[T] {
        &self.buffers[..self.n]
    }
}

/// Text on its way in.
struct Head {
    blocks: Blocks,
    batch: Batch<Vec<u8>>,
}

impl Head {
    /// Reads the next batch, empty after the last.
    fn fill(&mut self, monitor: &Monitor) -> Result<()> {
        self.batch.n = 0;
        while self.batch.n < BLOCKS_PER_THREAD * rayon::current_num_threads() {
            if !self.blocks.next(self.batch.push(), monitor)? {
                self.batch.n -= 1;
                break;
            }
        }
        Ok(())
    }
}

/// Columns on their way out.
struct Tail {
    file: String,
    batch: Batch<Parsed>,
    n_lines: u64,
    tally: Tally,
}

impl Tail {
    /// Hands on a batch, up to the first fault.
    fn empty_into(&mut self, sink: &mut impl Sink) -> Result<()> {
        for parsed in self.batch.in_use() {
            sink.append(&parsed.columns)?;
            self.tally.add(&parsed.columns);
            self.n_lines += parsed.columns.n_lines;
            if let Some(fault) = &parsed.fault {
                return Err(Error::Parse {
                    file: self.file.clone(),
                    line: self.n_lines + 1,
                    reason: fault.reason.to_owned(),
                    text: fault.text.clone(),
                });
            }
        }
        Ok(())
    }
}

/// One file on its way. A batch of blocks is read, then parsed, then appended; all three go on at
/// the same time, each with its own batch.
pub(super) struct Pipeline {
    head: Head,
    texts: Batch<Vec<u8>>,
    rules: Rules,
    columns: Batch<Parsed>,
    tail: Tail,
}

impl Pipeline {
    pub(super) fn open(input: Input, options: &Options) -> Result<Self> {
        let blocks = Blocks::open(input, options)?;
        Ok(Self {
            tail: Tail {
                file: blocks.name().to_owned(),
                batch: Batch::default(),
                n_lines: 0,
                tally: Tally::new(),
            },
            head: Head {
                blocks,
                batch: Batch::default(),
            },
            texts: Batch::default(),
            rules: Rules::new(options),
            columns: Batch::default(),
        })
    }

    /// Moves every batch one step on; false when the file has been read.
    pub(super) fn step(&mut self, sink: &mut impl Sink, monitor: &Monitor) -> Result<bool> {
        let (head, tail) = (&mut self.head, &mut self.tail);
        let (texts, columns) = (&self.texts, &mut self.columns);
        let (moved, ()) = rayon::join(
            || {
                tail.empty_into(sink)?;
                head.fill(monitor)
            },
            || parse_batch(texts, self.rules, columns),
        );
        moved?;
        std::mem::swap(&mut self.head.batch, &mut self.texts);
        std::mem::swap(&mut self.columns, &mut self.tail.batch);
        let has_more = self.texts.n > 0 || self.tail.batch.n > 0;
        if !has_more {
            self.head.blocks.failure(self.tail.n_lines + 1)?;
        }
        Ok(has_more)
    }

    /// Reads the whole file into `sink`, and returns what it held.
    pub(super) fn drain(mut self, sink: &mut impl Sink, monitor: &Monitor) -> Result<Tally> {
        let mut has_more = self.step(sink, monitor)?;
        let share = self.head.blocks.share();
        while has_more {
            let is_first = self.tail.n_lines == 0;
            has_more = self.step(sink, monitor)?;
            if is_first && self.tail.n_lines > 0 {
                sink.reserve(share);
            }
        }
        Ok(self.tail.tally)
    }
}

/// Parses every text into the columns of the same place.
fn parse_batch(texts: &Batch<Vec<u8>>, rules: Rules, columns: &mut Batch<Parsed>) {
    columns.n = 0;
    for _ in texts.in_use() {
        columns.push();
    }
    let pairs = columns.buffers.par_iter_mut().zip(texts.in_use());
    pairs.with_max_len(1).for_each(|(parsed, text)| {
        parsed.fault = parse(text, rules, &mut parsed.columns).err();
    });
}

/// Matrices with the same features, one a file.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// What each file holds.
    pub matrices: Vec<Matrix<'a>>,
    /// How many features all of them have.
    pub n_features: u64,
}

/// Reads whole files into memory.
pub fn load(inputs: Vec<Input>, options: &Options, monitor: &Monitor) -> Result<Loaded<'static>> {
    let room = || Room::new(options.precision);
    let inputs = inputs.into_iter().map(|input| (input, room()));
    load_into(inputs.collect(), options, monitor)
}

/// Reads whole files into memory that the caller lends.
pub fn load_into<'a>(
    inputs: Vec<(Input, Room<'a>)>,
    options: &Options,
    monitor: &Monitor,
) -> Result<Loaded<'a>> {
    let options = options.resolved()?;
    expect(inputs.iter().map(|(input, _)| input), &options, monitor);
    let (mut matrices, mut tallies) = (Vec::new(), Vec::new());
    for (input, room) in inputs {
        let mut matrix = Matrix::new(room);
        tallies.push(Pipeline::open(input, &options)?.drain(&mut matrix, monitor)?);
        matrices.push(matrix);
    }
    let layout = Layout::new(&tallies, &options)?;
    for matrix in &mut matrices {
        matrix.finish(layout);
    }
    Ok(Loaded {
        matrices,
        n_features: layout.n_features,
    })
}

/// Announces the work of reading `inputs` once.
pub(super) fn expect<'i>(
    inputs: impl IntoIterator<Item = &'i Input>,
    options: &Options,
    monitor: &Monitor,
) {
    monitor.expect(inputs.into_iter().map(|input| input.size(options)).sum());
}
