//! Columns on disk, as numpy's `.npy` files, written as they come.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use crate::{Error, Monitor, Result};

/// Room for a header of any length of array. A multiple of 64, so that data are aligned.
const HEADER: u16 = 128;

const BUFFER: usize = 1 << 17;

/// What stands in a column.
pub(super) trait Item: Copy {
    /// numpy's name of the type.
    const DESCR: &'static str;
    /// Its bytes, little end first.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Default;
    fn to_bytes(self) -> Self::Bytes;
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

macro_rules! item {
    ($type:ty, $descr:literal) => {
        impl Item for $type {
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

item!(i32, "<i4");
item!(i64, "<i8");
item!(f32, "<f4");
item!(f64, "<f8");

/// A column being written.
#[derive(Debug)]
pub(super) struct Column<T> {
    path: PathBuf,
    file: BufWriter<File>,
    len: u64,
    item: PhantomData<T>,
}

impl<T: Item> Column<T> {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let open = || {
            let mut file = BufWriter::with_capacity(BUFFER, File::create(&path)?);
            file.write_all(&[0; HEADER as usize])?;
            Ok(file)
        };
        let file = open().map_err(|source| failed(&path, source))?;
        Ok(Self {
            path,
            file,
            len: 0,
            item: PhantomData,
        })
    }

    pub(super) fn append(&mut self, items: impl IntoIterator<Item = T>) -> Result<()> {
        for item in items {
            self.file
                .write_all(item.to_bytes().as_ref())
                .map_err(|source| failed(&self.path, source))?;
            self.len += 1;
        }
        Ok(())
    }

    /// Moves the column to `path`, and changes every item on the way.
    pub(super) fn map<U: Item>(
        mut self,
        path: PathBuf,
        change: impl Fn(T) -> U,
        monitor: &Monitor,
    ) -> Result<Column<U>> {
        let mut column = Column::create(path)?;
        let mut copy = || -> io::Result<Result<()>> {
            self.file.flush()?;
            let mut old = BufReader::with_capacity(BUFFER, File::open(&self.path)?);
            old.seek(SeekFrom::Start(HEADER.into()))?;
            for at in 0..self.len {
                let mut bytes = T::Bytes::default();
                old.read_exact(bytes.as_mut())?;
                let appended = column.append([change(T::from_bytes(bytes))]);
                let go_on = if at % 4096 == 0 {
                    monitor.check()
                } else {
                    Ok(())
                };
                if let stop @ Err(_) = appended.and(go_on) {
                    return Ok(stop);
                }
            }
            std::fs::remove_file(&self.path).map(Ok)
        };
        copy().map_err(|source| failed(&self.path, source))??;
        Ok(column)
    }

    /// Writes the header, now that the length is known.
    pub(super) fn finish(self) -> Result<()> {
        let path = self.path.clone();
        self.finish_file().map_err(|source| failed(&path, source))
    }

    fn finish_file(mut self) -> io::Result<()> {
        let (descr, len) = (T::DESCR, self.len);
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend(u16::to_le_bytes(HEADER - 10));
        header.extend(
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len},), }}").bytes(),
        );
        header.resize(usize::from(HEADER) - 1, b' ');
        header.push(b'\n');
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        // On the disk before the directory gets its name.
        self.file.into_inner()?.sync_all()
    }
}

/// An [`Error::Io`] about `path`.
pub(super) fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io {
        file: path.display().to_string(),
        source,
    }
}
