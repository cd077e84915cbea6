//! Arrays on disk, read in ranges.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use bytemuck::Pod;

use crate::{Error, Monitor, Result};

/// Bytes that are read between two polls of the monitor.
const POLL_BYTES: usize = 1 << 24;

/// Elements of another type that are read before they are converted.
const CONVERT_CHUNK: usize = 1 << 16;

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

    /// Reads floating-point elements from `start` on.
    pub(super) fn read_floats(
        &self,
        start: u64,
        values: &mut [f64],
        monitor: &Monitor,
    ) -> Result<()> {
        match self.element {
            Element::F64 => self.read(start, values, monitor),
            Element::F32 => self.convert::<f32, f64>(start, values, f64::from, monitor),
            _ => Err(self.wrong_type("floating-point numbers")),
        }
    }

    /// Reads 32-bit integers from `start` on.
    pub(super) fn read_i32(&self, start: u64, values: &mut [i32], monitor: &Monitor) -> Result<()> {
        match self.element {
            Element::I32 => self.read(start, values, monitor),
            _ => Err(self.wrong_type("32-bit integers")),
        }
    }

    /// Reads integers from `start` on.
    pub(super) fn read_i64(&self, start: u64, values: &mut [i64], monitor: &Monitor) -> Result<()> {
        match self.element {
            Element::I64 => self.read(start, values, monitor),
            Element::I32 => self.convert::<i32, i64>(start, values, i64::from, monitor),
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
        mut start: u64,
        values: &mut [T],
        convert: impl Fn(S) -> T,
        monitor: &Monitor,
    ) -> Result<()> {
        let mut buffer = vec![S::zeroed(); values.len().min(CONVERT_CHUNK)];
        for part in values.chunks_mut(CONVERT_CHUNK) {
            let buffer = &mut buffer[..part.len()];
            self.read(start, buffer, monitor)?;
            for (value, &stored) in part.iter_mut().zip(&*buffer) {
                *value = convert(stored);
            }
            start += part.len() as u64;
        }
        Ok(())
    }

    fn read<T: Pod>(&self, start: u64, values: &mut [T], monitor: &Monitor) -> Result<()> {
        let mut position = self.offset + start * size_of::<T>() as u64;
        for part in bytemuck::cast_slice_mut(values).chunks_mut(POLL_BYTES) {
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
