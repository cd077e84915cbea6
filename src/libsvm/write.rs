//! Rows written as text.
//!
//! Numbers have the fewest digits that read back as the same bits. Groups of rows are formatted in
//! parallel while the previous ones are written.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::atomic::AtomicFile;
use super::compression::Compression;
use super::source::stream_error;
use crate::data::{Layout, Row};
use crate::{Error, Monitor, Result};

/// Maximal size of a group of rows that one task formats.
const GROUP_VALUES: usize = 1 << 15;
const GROUP_ROWS: usize = 1 << 12;

/// Groups per thread in a batch.
const GROUPS_PER_THREAD: usize = 4;

/// The labels of every row.
#[derive(Clone, Copy, Debug)]
pub enum Labels<'a> {
    /// One per row.
    Single(&'a [f64]),
    /// Any number per row: those of all rows concatenated, and the end of each row's labels.
    Multi(&'a [f64], &'a [usize]),
}

/// Rows and the format in which they are written.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a, R> {
    /// The rows.
    pub rows: &'a R,
    /// Their labels.
    pub labels: Labels<'a>,
    /// Their query ids, if any.
    pub qids: Option<&'a [i64]>,
    /// Whether the first feature has index 1 rather than 0.
    pub is_one_based: bool,
    /// Whether stored zeros are written.
    pub writes_zeros: bool,
    /// Comment lines at the beginning.
    pub header: &'a [u8],
}

impl<R: Layout> Document<'_, R> {
    /// Writes the text to `sink`, called `name` in messages.
    pub fn write(
        &self,
        sink: &mut (impl Write + Send),
        name: &str,
        monitor: &Monitor,
    ) -> Result<()> {
        self.check()?;
        let n_rows = self.rows.n_rows();
        monitor.add_total(n_rows as u64);
        let row_len = (self.rows.n_stored() / n_rows.max(1)).max(1);
        let group_len = (GROUP_VALUES / row_len).clamp(1, GROUP_ROWS);
        let n_groups = GROUPS_PER_THREAD * rayon::current_num_threads();
        let (mut formatted, mut ready) = (vec![Vec::new(); n_groups], vec![self.header.to_vec()]);
        for start in (0..n_rows).step_by(group_len * n_groups) {
            let (written, done) = rayon::join(
                || write_texts(&ready, sink, name, monitor),
                || self.format_groups(start, group_len, &mut formatted, monitor),
            );
            written.and(done)?;
            std::mem::swap(&mut formatted, &mut ready);
            formatted.resize_with(n_groups, Vec::new);
        }
        write_texts(&ready, sink, name, monitor)
    }

    /// Writes the text to a file, compressed by its extension. The file is replaced atomically.
    pub fn write_to_path(&self, path: &Path, monitor: &Monitor) -> Result<()> {
        let name = path.display().to_string();
        let io_error = |error| stream_error(&name, error);
        let compression = Compression::from_path(path).unwrap_or(Compression::Plain);
        let (target, file) = AtomicFile::create(path).map_err(io_error)?;
        let mut encoder = compression.encoder(file).map_err(io_error)?;
        self.write(&mut encoder, &name, monitor)?;
        encoder.finish().map_err(io_error)?;
        target.commit().map_err(io_error)
    }

    /// Checks that lengths agree.
    fn check(&self) -> Result<()> {
        let agree = |what, found| match self.rows.n_rows() {
            expected if expected == found => Ok(()),
            expected => Err(Error::Shape {
                what,
                expected,
                found,
            }),
        };
        match self.labels {
            Labels::Single(labels) => agree("y", labels.len())?,
            Labels::Multi(labels, ends) => {
                agree("y", ends.len())?;
                let last = ends.last().copied().unwrap_or(0);
                if !ends.is_sorted() || last != labels.len() {
                    return Err(Error::Shape {
                        what: "the labels of all rows",
                        expected: last,
                        found: labels.len(),
                    });
                }
            }
        }
        self.qids
            .map_or(Ok(()), |qids| agree("query_id", qids.len()))
    }

    /// Formats rows from `start` on, `group_len` rows per text.
    fn format_groups(
        &self,
        start: usize,
        group_len: usize,
        texts: &mut [Vec<u8>],
        monitor: &Monitor,
    ) -> Result<()> {
        let n_rows = self.rows.n_rows();
        let format = |(i, text): (usize, &mut Vec<u8>)| {
            let start = n_rows.min(start + i * group_len);
            let end = n_rows.min(start + group_len);
            text.clear();
            self.format(start..end, text)?;
            monitor.advance((end - start) as u64)
        };
        let texts = texts.par_iter_mut().enumerate().with_max_len(1);
        // The error reported is the first in file order, not in time.
        texts.map(format).collect::<Vec<_>>().into_iter().collect()
    }

    fn format(&self, rows: Range<usize>, text: &mut Vec<u8>) -> Result<()> {
        for row in rows {
            let before = text.len();
            let labels = match self.labels {
                Labels::Single(labels) => &labels[row..=row],
                Labels::Multi(labels, ends) => {
                    let start = row.checked_sub(1).map_or(0, |previous| ends[previous]);
                    &labels[start..ends[row]]
                }
            };
            for (i, &label) in labels.iter().enumerate() {
                if i > 0 {
                    text.push(b',');
                }
                push_number(text, label);
            }
            if let Some(qids) = self.qids {
                text.extend_from_slice(b" qid:");
                push_integer(text, qids[row]);
            }
            for (feature, value) in self.rows.row(row).entries() {
                if value != 0.0 || self.writes_zeros {
                    text.push(b' ');
                    push_integer(text, feature + usize::from(self.is_one_based));
                    text.push(b':');
                    push_number(text, value);
                }
            }
            if text.len() == before {
                return Err(Error::Parameter {
                    name: "y",
                    rule: "a label at least for rows without features: the format has no other \
                           way to write these",
                    value: format!("none for row {row}"),
                });
            }
            text.push(b'\n');
        }
        Ok(())
    }
}

fn write_texts(
    texts: &[Vec<u8>],
    sink: &mut impl Write,
    name: &str,
    monitor: &Monitor,
) -> Result<()> {
    // Compression is slow, so cancellation is checked after small pieces.
    for piece in texts.iter().flat_map(|text| text.chunks(1 << 16)) {
        monitor.check()?;
        sink.write_all(piece)
            .map_err(|error| stream_error(name, error))?;
    }
    Ok(())
}

fn push_integer(text: &mut Vec<u8>, number: impl std::fmt::Display) {
    // Writing to memory does not fail.
    let _ = write!(text, "{number}");
}

fn push_number(text: &mut Vec<u8>, number: f64) {
    let mut buffer = zmij::Buffer::new();
    let digits = buffer.format(number);
    text.extend_from_slice(digits.strip_suffix(".0").unwrap_or(digits).as_bytes());
}
