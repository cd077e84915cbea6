//! The pipeline from text to rows.

use rayon::prelude::*;

use super::ReadOptions;
use super::features::{FeatureSpace, IndexStats};
use super::matrix::{Buffers, Matrix};
use super::parse::{Columns, LineError, Rules, parse};
use super::source::{Input, LineBlocks};
use crate::{Error, Monitor, Result};

/// Blocks per thread in a batch: enough to balance the load.
const BLOCKS_PER_THREAD: usize = 8;

/// Receives rows in file order.
pub(super) trait Sink: Send {
    /// Appends the rows of the next block.
    fn append(&mut self, columns: &Columns) -> Result<()>;

    /// Reserves memory, if the rows so far are about this fraction of all.
    fn reserve(&mut self, _fraction: f64) {}
}

/// Discards the rows; only the [`IndexStats`] are kept.
impl Sink for () {
    fn append(&mut self, _: &Columns) -> Result<()> {
        Ok(())
    }
}

/// A block, parsed up to its end or its first invalid line.
#[derive(Default)]
struct Parsed {
    columns: Columns,
    error: Option<LineError>,
}

/// Reusable buffers, of which the first `n` are in use.
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

/// First stage: reads text.
struct ReadStage {
    blocks: LineBlocks,
    batch: Batch<Vec<u8>>,
}

impl ReadStage {
    /// Reads the next batch, which is empty at the end of the file.
    fn read_batch(&mut self, monitor: &Monitor) -> Result<()> {
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

/// Last stage: appends columns to the sink.
struct AppendStage {
    file: String,
    batch: Batch<Parsed>,
    n_lines: u64,
    stats: IndexStats,
}

impl AppendStage {
    /// Appends a batch, up to the first error.
    fn append_batch(&mut self, sink: &mut impl Sink) -> Result<()> {
        for parsed in self.batch.in_use() {
            sink.append(&parsed.columns)?;
            self.stats.add(&parsed.columns);
            self.n_lines += parsed.columns.n_lines;
            if let Some(error) = &parsed.error {
                return Err(Error::Parse {
                    file: self.file.clone(),
                    line: self.n_lines + 1,
                    reason: error.reason.to_owned(),
                    text: error.text.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Reads one file in three concurrent stages (read, parse, append), each with a batch of its own.
pub(super) struct Pipeline {
    reading: ReadStage,
    texts: Batch<Vec<u8>>,
    rules: Rules,
    columns: Batch<Parsed>,
    appending: AppendStage,
}

impl Pipeline {
    pub(super) fn open(input: Input, options: &ReadOptions, monitor: &Monitor) -> Result<Self> {
        let blocks = LineBlocks::open(input, options, monitor)?;
        Ok(Self {
            appending: AppendStage {
                file: blocks.name().to_owned(),
                batch: Batch::default(),
                n_lines: 0,
                stats: IndexStats::new(),
            },
            reading: ReadStage {
                blocks,
                batch: Batch::default(),
            },
            texts: Batch::default(),
            rules: Rules::new(options),
            columns: Batch::default(),
        })
    }

    /// Advances every batch by one stage; false at the end of the file.
    pub(super) fn step(&mut self, sink: &mut impl Sink, monitor: &Monitor) -> Result<bool> {
        let (reading, appending) = (&mut self.reading, &mut self.appending);
        let (texts, columns) = (&self.texts, &mut self.columns);
        let (advanced, ()) = rayon::join(
            || {
                appending.append_batch(sink)?;
                reading.read_batch(monitor)
            },
            || parse_batch(texts, self.rules, columns),
        );
        advanced?;
        std::mem::swap(&mut self.reading.batch, &mut self.texts);
        std::mem::swap(&mut self.columns, &mut self.appending.batch);
        let has_more = self.texts.n > 0 || self.appending.batch.n > 0;
        if !has_more {
            self.reading.blocks.take_error(self.appending.n_lines + 1)?;
        }
        Ok(has_more)
    }

    /// Reads the whole file into `sink`.
    pub(super) fn run(mut self, sink: &mut impl Sink, monitor: &Monitor) -> Result<IndexStats> {
        let mut has_more = self.step(sink, monitor)?;
        let fraction = self.reading.blocks.fraction_read();
        while has_more {
            let is_first = self.appending.n_lines == 0;
            has_more = self.step(sink, monitor)?;
            if is_first && self.appending.n_lines > 0 {
                sink.reserve(fraction);
            }
        }
        Ok(self.appending.stats)
    }
}

/// Parses text `i` into columns `i`.
fn parse_batch(texts: &Batch<Vec<u8>>, rules: Rules, columns: &mut Batch<Parsed>) {
    columns.n = 0;
    for _ in texts.in_use() {
        columns.push();
    }
    let pairs = columns.buffers.par_iter_mut().zip(texts.in_use());
    pairs.with_max_len(1).for_each(|(parsed, text)| {
        parsed.error = parse(text, rules, &mut parsed.columns).err();
    });
}

/// Matrices with the same features, one per file.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// The contents of each file.
    pub matrices: Vec<Matrix<'a>>,
    /// Number of features of all of them.
    pub n_features: u64,
}

/// Reads whole files into memory.
pub fn load(
    inputs: Vec<Input>,
    options: &ReadOptions,
    monitor: &Monitor,
) -> Result<Loaded<'static>> {
    let buffers = || Buffers::new(options.precision);
    let inputs = inputs.into_iter().map(|input| (input, buffers()));
    load_into(inputs.collect(), options, monitor)
}

/// Reads whole files into the caller's buffers, as far as these suffice.
pub fn load_into<'a>(
    inputs: Vec<(Input, Buffers<'a>)>,
    options: &ReadOptions,
    monitor: &Monitor,
) -> Result<Loaded<'a>> {
    let options = options.resolved()?;
    announce(inputs.iter().map(|(input, _)| input), &options, monitor);
    let (mut matrices, mut stats) = (Vec::new(), Vec::new());
    for (input, buffers) in inputs {
        let mut matrix = Matrix::new(buffers);
        let pipeline = Pipeline::open(input, &options, monitor)?;
        stats.push(pipeline.run(&mut matrix, monitor)?);
        matrices.push(matrix);
    }
    let features = FeatureSpace::new(&stats, &options)?;
    for matrix in &mut matrices {
        matrix.finish(features)?;
    }
    Ok(Loaded {
        matrices,
        n_features: features.n_features,
    })
}

/// Announces the bytes of `inputs` to the monitor.
pub(super) fn announce<'i>(
    inputs: impl IntoIterator<Item = &'i Input>,
    options: &ReadOptions,
    monitor: &Monitor,
) {
    monitor.add_total(inputs.into_iter().map(|input| input.size(options)).sum());
}
