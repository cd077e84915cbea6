//! Rows as text.
//!
//! Numbers have the fewest digits that read back as the same bits. Groups of rows are formatted in
//! parallel while those before them are written.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::compression::Compression;
use super::place::PlacedFile;
use super::source::stream_error;
use crate::data::{Layout, Row};
use crate::{Error, Monitor, Result};

/// How many values, and how many rows, make a group.
const GROUP_VALUES: usize = 1 << 15;
const GROUP_ROWS: usize = 1 << 12;

/// How many groups a thread gets at a time.
const GROUPS_PER_THREAD: usize = 4;

/// The labels of every row.
#[derive(Clone, Copy, Debug)]
pub enum Labels<'a> {
    /// One each.
    Single(&'a [f64]),
    /// Any number each: those of all rows on end, and where each row's end.
    Multi(&'a [f64], &'a [usize]),
}

/// What to write, and how.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a, R> {
    /// The rows.
    pub rows: &'a R,
    /// Their labels.
    pub labels: Labels<'a>,
    /// Their queries, if there are any.
    pub qids: Option<&'a [i64]>,
    /// Whether the first feature has index 1 rather than 0.
    pub is_one_based: bool,
    /// Whether zeros are written where rows store them.
    pub keeps_zeros: bool,
    /// Lines of comment to begin with.
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
        monitor.expect(n_rows as u64);
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

    /// Writes the text to a file, compressed as its extension says. It replaces what was there
    /// when it is complete.
    pub fn write_to_path(&self, path: &Path, monitor: &Monitor) -> Result<()> {
        let name = path.display().to_string();
        let failed = |error| stream_error(&name, error);
        let compression = Compression::of_path(path).unwrap_or(Compression::Plain);
        let (placed, file) = PlacedFile::create(path).map_err(failed)?;
        let mut encoder = compression.encoder(file).map_err(failed)?;
        self.write(&mut encoder, &name, monitor)?;
        encoder.finish().map_err(failed)?;
        placed.commit().map_err(failed)
    }

    /// Checks that the parts agree.
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

    /// Formats rows from `start` on, `group_len` a text.
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
        // The first error is the one to report, whichever came first.
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
                if value != 0.0 || self.keeps_zeros {
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
    // Small pieces: compression is slow.
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
