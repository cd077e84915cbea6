//! The pipeline from text to rows.

use rayon::prelude::*;

use super::Options;
use super::layout::{Layout, Tally};
use super::matrix::Matrix;
use super::parse::{Columns, Fault, Rules, parse};
use super::source::{Blocks, Input};
use crate::{Error, Monitor, Result};

/// How many blocks a thread gets at a time: enough to even out that some take longer.
const BLOCKS_PER_THREAD: usize = 4;

/// Where rows go, in the order of the file.
pub(super) trait Sink: Send {
    /// Takes the rows of the next block.
    fn append(&mut self, columns: &Columns) -> Result<()>;
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
}

/// One file on its way. A batch of blocks is read, then parsed, then appended; all three go on at
/// the same time, each with its own batch.
pub(super) struct Pipeline {
    blocks: Blocks,
    rules: Rules,
    /// Texts being read, and those being parsed.
    incoming: Batch<Vec<u8>>,
    texts: Batch<Vec<u8>>,
    /// Columns being parsed, and those being appended.
    columns: Batch<Parsed>,
    outgoing: Batch<Parsed>,
    n_lines: u64,
    tally: Tally,
}

impl Pipeline {
    pub(super) fn open(input: Input, options: &Options) -> Result<Self> {
        Ok(Self {
            blocks: Blocks::open(input, options)?,
            rules: Rules::new(options),
            incoming: Batch::default(),
            texts: Batch::default(),
            columns: Batch::default(),
            outgoing: Batch::default(),
            n_lines: 0,
            tally: Tally::new(),
        })
    }

    /// Moves every batch one step on; false when the file has been read.
    pub(super) fn step(&mut self, sink: &mut impl Sink, monitor: &Monitor) -> Result<bool> {
        let Self {
            blocks,
            incoming,
            outgoing,
            n_lines,
            tally,
            ..
        } = self;
        let move_on = || -> Result<()> {
            for parsed in &outgoing.buffers[..outgoing.n] {
                sink.append(&parsed.columns)?;
                tally.add(&parsed.columns);
                *n_lines += parsed.columns.n_lines;
                if let Some(fault) = &parsed.fault {
                    return Err(Error::Parse {
                        file: blocks.name().to_owned(),
                        line: *n_lines + 1,
                        reason: fault.reason.to_owned(),
                        text: fault.text.clone(),
                    });
                }
            }
            incoming.n = 0;
            let n_blocks = BLOCKS_PER_THREAD * rayon::current_num_threads();
            while incoming.n < n_blocks && blocks.next(incoming.push(), monitor)? {}
            Ok(())
        };
        let (texts, columns, rules) = (&self.texts, &mut self.columns, self.rules);
        let parse_on = || {
            columns.n = 0;
            for _ in 0..texts.n {
                columns.push();
            }
            columns.buffers[..texts.n]
                .par_iter_mut()
                .zip(&texts.buffers[..texts.n])
                .with_max_len(1)
                .for_each(|(parsed, text)| {
                    parsed.fault = parse(text, rules, &mut parsed.columns).err();
                });
        };
        rayon::join(move_on, parse_on).0?;
        std::mem::swap(&mut self.incoming, &mut self.texts);
        std::mem::swap(&mut self.columns, &mut self.outgoing);
        let is_empty = self.texts.n == 0 && self.outgoing.n == 0;
        if is_empty {
            self.blocks.failure(self.n_lines + 1)?;
        }
        Ok(!is_empty)
    }

    /// What the whole file held, once it has been read into `sink`.
    pub(super) fn drain(mut self, sink: &mut impl Sink, monitor: &Monitor) -> Result<Tally> {
        while self.step(sink, monitor)? {}
        Ok(self.tally)
    }
}

/// Matrices with the same features, one a file.
#[derive(Debug)]
pub struct Loaded {
    /// What each file holds.
    pub matrices: Vec<Matrix>,
    /// How many features all of them have.
    pub n_features: u64,
}

/// Reads whole files into memory.
pub fn load(inputs: Vec<Input>, options: &Options, monitor: &Monitor) -> Result<Loaded> {
    let options = options.resolved()?;
    expect(&inputs, &options, monitor);
    let (mut matrices, mut tallies) = (Vec::new(), Vec::new());
    for input in inputs {
        let mut matrix = Matrix::new(options.precision);
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
pub(super) fn expect(inputs: &[Input], options: &Options, monitor: &Monitor) {
    monitor.expect(inputs.iter().map(|input| input.size(options)).sum());
}
