//! numpy's `.npy` files of one dimension, written incrementally.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;

use crate::{Error, Monitor, Result};

/// Enough for the header of any length of array. A multiple of 64, so that data are aligned.
const HEADER_BYTES: u16 = 128;

const BUFFER_BYTES: usize = 1 << 17;

/// Elements copied between checks for cancellation.
const POLL_INTERVAL: u64 = 4096;

/// A file and the checksum of what is written to it.
#[derive(Debug)]
struct ChecksumFile {
    file: File,
    crc32: Hasher,
}

impl Write for ChecksumFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.crc32.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// What is known of a complete file, to recognise damage.
#[derive(Debug)]
pub(super) struct ArrayFile {
    /// numpy's name of the type.
    pub(super) dtype: &'static str,
    /// The number of elements.
    pub(super) len: u64,
    /// The size of the file.
    pub(super) n_bytes: u64,
    /// The checksum of the elements, without the header.
    pub(super) crc32: u32,
}

/// The type of an array's elements.
pub(super) trait NpyElement: Copy {
    /// numpy's name of the type.
    const DESCR: &'static str;
    /// Its bytes, in little-endian order.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Default;
    fn to_bytes(self) -> Self::Bytes;
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

macro_rules! element {
    ($type:ty, $descr:literal) => {
        impl NpyElement for $type {
            const DESCR: &'static str = $descr;
            type Bytes = [u8; size_of::<$type>()];
            fn to_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_le_bytes(bytes)
            }
        }
    };
}

element!(i32, "<i4");
element!(i64, "<i8");
element!(f32, "<f4");
element!(f64, "<f8");

/// An array that is being written.
#[derive(Debug)]
pub(super) struct NpyWriter<T> {
    path: PathBuf,
    file: BufWriter<ChecksumFile>,
    len: u64,
    element: PhantomData<T>,
}

impl<T: NpyElement> NpyWriter<T> {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let open = || {
            let mut file = File::create(&path)?;
            file.write_all(&[0; HEADER_BYTES as usize])?;
            let crc32 = Hasher::new();
            let file = ChecksumFile { file, crc32 };
            Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        let file = open().map_err(|source| io_error(&path, source))?;
        Ok(Self {
            path,
            file,
            len: 0,
            element: PhantomData,
        })
    }

    pub(super) fn append(&mut self, elements: impl IntoIterator<Item = T>) -> Result<()> {
        for element in elements {
            self.file
                .write_all(element.to_bytes().as_ref())
                .map_err(|source| io_error(&self.path, source))?;
            self.len += 1;
        }
        Ok(())
    }

    /// Moves the array to `path`, applying `f` to every element.
    pub(super) fn map<U: NpyElement>(
        mut self,
        path: PathBuf,
        f: impl Fn(T) -> U,
        monitor: &Monitor,
    ) -> Result<NpyWriter<U>> {
        let mut mapped = NpyWriter::create(path)?;
        let mut copy = || -> io::Result<Result<()>> {
            self.file.flush()?;
            let mut old = BufReader::with_capacity(BUFFER_BYTES, File::open(&self.path)?);
            old.seek(SeekFrom::Start(HEADER_BYTES.into()))?;
            for i in 0..self.len {
                let mut bytes = T::Bytes::default();
                old.read_exact(bytes.as_mut())?;
                let appended = mapped.append([f(T::from_bytes(bytes))]);
                let checked = if i % POLL_INTERVAL == 0 {
                    monitor.check()
                } else {
                    Ok(())
                };
                if let stop @ Err(_) = appended.and(checked) {
                    return Ok(stop);
                }
            }
            std::fs::remove_file(&self.path).map(Ok)
        };
        copy().map_err(|source| io_error(&self.path, source))??;
        Ok(mapped)
    }

    /// Writes the header, which holds the length, and flushes the file to the disk.
    pub(super) fn finish(self) -> Result<ArrayFile> {
        let path = self.path.clone();
        self.write_header()
            .map_err(|source| io_error(&path, source))
    }

    fn write_header(self) -> io::Result<ArrayFile> {
        let (descr, len) = (T::DESCR, self.len);
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend(u16::to_le_bytes(HEADER_BYTES - 10));
        header.extend(
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len},), }}").bytes(),
        );
        header.resize(usize::from(HEADER_BYTES) - 1, b' ');
        header.push(b'\n');
        let ChecksumFile { mut file, crc32 } = self.file.into_inner()?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&header)?;
        file.sync_all()?;
        Ok(ArrayFile {
            dtype: descr,
            len,
            n_bytes: u64::from(HEADER_BYTES) + len * size_of::<T>() as u64,
            crc32: crc32.finalize(),
        })
    }
}

/// An [`Error::Io`] about `path`.
pub(super) fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io {
        file: path.display().to_string(),
        source,
    }
}
