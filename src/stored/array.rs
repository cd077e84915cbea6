//! Arrays on disk, read in ranges.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use bytemuck::Pod;

use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// Bytes that are read between two polls of the monitor.
const POLL_BYTES: usize = 1 << 24;

/// The type of the elements of a [`StoredArray`], in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
}

impl Element {
    /// Bytes of one element.
    pub(super) fn size(self) -> u64 {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }
}

/// An array of one dimension in a file, which must not change while it is read.
#[derive(Debug)]
pub struct StoredArray {
    name: String,
    file: File,
    /// Where the first element is.
    offset: u64,
    element: Element,
    len: u64,
    stamp: Stamp,
}

/// By which a changed file is recognised.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    n_bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            n_bytes: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl StoredArray {
    /// Opens an array of `len` elements that begins at byte `offset` of a file.
    pub fn open(path: &Path, offset: u64, element: Element, len: u64) -> Result<Self> {
        let name = path.display().to_string();
        let failed = |source| Error::Io {
            file: name.clone(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let stamp = Stamp::of(&file.metadata().map_err(failed)?);
        let needed = len.saturating_mul(element.size()).saturating_add(offset);
        if stamp.n_bytes < needed {
            let reason = format!("it has {} bytes, not {needed}", stamp.n_bytes);
            return Err(failed(io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
        }
        Ok(Self {
            name,
            file,
            offset,
            element,
            len,
            stamp,
        })
    }

    /// The number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Appends floating-point elements to `values`.
    pub(super) fn read_floats(
        &self,
        range: Range<u64>,
        values: &mut Vec<f64>,
        monitor: &Monitor,
    ) -> Result<()> {
        match self.element {
            Element::F64 => self.read(range, values, monitor),
            Element::F32 => self.convert::<f32, f64>(range, values, f64::from, monitor),
            _ => Err(self.wrong_type("floating-point numbers")),
        }
    }

    /// Appends 32-bit integers to `values`.
    pub(super) fn read_i32(
        &self,
        range: Range<u64>,
        values: &mut Vec<i32>,
        monitor: &Monitor,
    ) -> Result<()> {
        match self.element {
            Element::I32 => self.read(range, values, monitor),
            _ => Err(self.wrong_type("32-bit integers")),
        }
    }

    /// Appends integers to `values`.
    pub(super) fn read_i64(
        &self,
        range: Range<u64>,
        values: &mut Vec<i64>,
        monitor: &Monitor,
    ) -> Result<()> {
        match self.element {
            Element::I64 => self.read(range, values, monitor),
            Element::I32 => self.convert::<i32, i64>(range, values, i64::from, monitor),
            _ => Err(self.wrong_type("integers")),
        }
    }

    fn wrong_type(&self, expected: &'static str) -> Error {
        Error::Io {
            file: self.name.clone(),
            source: io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it holds {:?}, not {expected}", self.element),
            ),
        }
    }

    fn convert<S: Pod, T>(
        &self,
        range: Range<u64>,
        values: &mut Vec<T>,
        convert: impl Fn(S) -> T,
        monitor: &Monitor,
    ) -> Result<()> {
        let mut part = Vec::new();
        let Range { mut start, end } = range;
        while start < end {
            let stop = end.min(start + (POLL_BYTES / size_of::<S>()) as u64);
            part.clear();
            self.read::<S>(start..stop, &mut part, monitor)?;
            memory::reserve("a block of rows", values, part.len())?;
            values.extend(part.iter().map(|&value| convert(value)));
            start = stop;
        }
        Ok(())
    }

    fn read<T: Pod>(
        &self,
        range: Range<u64>,
        values: &mut Vec<T>,
        monitor: &Monitor,
    ) -> Result<()> {
        let (n_old, size) = (values.len(), size_of::<T>() as u64);
        #[allow(clippy::cast_possible_truncation)] // checked by `reserve`
        let n_new = range.end.saturating_sub(range.start) as usize;
        memory::reserve("a block of rows", values, n_new)?;
        values.resize(n_old + n_new, T::zeroed());
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values[n_old..]);
        let mut position = self.offset + range.start * size;
        for part in bytes.chunks_mut(POLL_BYTES) {
            monitor.check()?;
            read_exact_at(&self.file, part, position).map_err(|source| self.failed(source))?;
            position += part.len() as u64;
        }
        self.check_unchanged()
    }

    /// An error if the file is not the one that was opened any more.
    fn check_unchanged(&self) -> Result<()> {
        let metadata = self.file.metadata().map_err(|source| self.failed(source))?;
        if Stamp::of(&metadata) == self.stamp {
            return Ok(());
        }
        Err(self.failed(io::Error::other("it changed while it was read")))
    }

    fn failed(&self, source: io::Error) -> Error {
        let changed = source.kind() == io::ErrorKind::UnexpectedEof;
        Error::Io {
            file: self.name.clone(),
            source: if changed {
                io::Error::other("it changed while it was read: it is shorter than before")
            } else {
                source
            },
        }
    }
}

/// Reads bytes at a position of a file; threads do not share a cursor.
#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], position: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, position)
}

/// Reads bytes at a position of a file.
#[cfg(windows)]
pub(super) fn read_exact_at(
    file: &File,
    mut bytes: &mut [u8],
    mut position: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_read(file, bytes, position)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[n..];
        position += n as u64;
    }
    Ok(())
}
