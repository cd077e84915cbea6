//! Where text comes from: paths and streams, cut into blocks of whole lines.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Options;
use super::compression::{Compression, MAGIC_LEN};
use super::parse::excerpt;
use crate::{Error, Monitor, Result};

/// An open file, or what behaves like one. It is sought only where [`Options::offset`] is given.
pub trait Stream: Read + Seek + Send {}

impl<T: Read + Seek + Send> Stream for T {}

/// An error of a [`Stream`] that is to reach the caller of the reader unchanged.
///
/// Wrapped in an [`io::Error`] it comes back as [`Error::Callback`].
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StreamError(pub Box<dyn std::error::Error + Send + Sync>);

/// A file to read.
pub enum Input {
    /// A path. Its extension, or else its first bytes, tell how it is compressed.
    Path(PathBuf),
    /// An open file, read from where it stands. Its first bytes tell how it is compressed.
    Stream(String, Box<dyn Stream>),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Input {
    /// The open file `reader`, called `name` in messages.
    pub fn stream(name: impl Into<String>, reader: impl Stream + 'static) -> Self {
        Self::Stream(name.into(), Box::new(reader))
    }

    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stream(name, _) => name.clone(),
        }
    }

    /// How many bytes reading will take from the disk, as far as that can be known.
    pub(super) fn size(&self, options: &Options) -> u64 {
        let Self::Path(path) = self else { return 0 };
        let size = std::fs::metadata(path).map_or(0, |about| about.len());
        if Compression::of_path(path).is_some() {
            return size;
        }
        let after_offset = size.saturating_sub(options.offset);
        after_offset.min(options.length.unwrap_or(u64::MAX))
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The text of one input in blocks of whole lines.
pub(super) struct Blocks {
    /// What messages call the file.
    name: String,
    compression: Compression,
    text: Box<dyn Read + Send>,
    block_size: usize,
    /// Bytes taken from the file so far, before decompression, and how many were reported.
    taken: Arc<AtomicU64>,
    reported: u64,
    /// How many bytes there are to take, as far as is known.
    size: u64,
    /// Text to pass over before the first line, and whether that ends inside a line.
    skip: u64,
    is_inside_line: bool,
    /// Where in the text the next block starts, and the last place where a line may.
    position: u64,
    last_start: u64,
    /// The beginning of a line whose end was not read yet.
    carry: Vec<u8>,
    ended: bool,
    broken: Option<io::Error>,
}

impl Blocks {
    /// Opens `input` and finds out how it is compressed.
    pub(super) fn open(input: Input, options: &Options) -> Result<Self> {
        let mut name = input.name();
        let size = input.size(options);
        let declared = match &input {
            Input::Path(path) => Compression::of_path(path),
            Input::Stream(..) => None,
        };
        let offset = options.offset;
        let prepare = || -> io::Result<_> {
            let mut file: Box<dyn Stream> = match input {
                Input::Path(path) => Box::new(File::open(path)?),
                Input::Stream(_, stream) => stream,
            };
            if offset > 0 {
                file.seek(SeekFrom::Start(0))?;
            }
            let mut head = Vec::with_capacity(MAGIC_LEN);
            file.by_ref()
                .take(MAGIC_LEN as u64)
                .read_to_end(&mut head)?;
            let found = Compression::of_magic(&head);
            let compression = declared.unwrap_or(found);
            if compression != found {
                let message = format!("not a {} file, as its name says", compression.name());
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            let mut skip = offset;
            if offset > 0 && compression == Compression::Plain {
                file.seek(SeekFrom::Start(offset))?;
                head.clear();
                skip = 0;
            }
            let taken = Arc::new(AtomicU64::new(0));
            let bytes = Counted {
                inner: Cursor::new(head).chain(file),
                count: Arc::clone(&taken),
            };
            Ok((compression, compression.decoder(bytes)?, taken, skip))
        };
        let (compression, text, taken, skip) =
            prepare().map_err(|error| stream_error(&name, error))?;
        if offset > 0 {
            name = format!("{name} (lines counted after byte {offset})");
        }
        Ok(Self {
            name,
            compression,
            text,
            block_size: options.block_size.max(1),
            taken,
            reported: 0,
            size,
            skip,
            is_inside_line: offset > 0,
            position: offset,
            last_start: options
                .length
                .map_or(u64::MAX, |length| offset.saturating_add(length)),
            carry: Vec::new(),
            ended: false,
            broken: None,
        })
    }

    /// What messages call the file.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Which part of the file has been taken so far; all of it where its size is not known.
    pub(super) fn share(&self) -> f64 {
        let taken = self.taken.load(Ordering::Relaxed).max(1);
        taken as f64 / self.size.max(taken) as f64
    }

    /// Puts the next lines into `block`; false when there are no more, or no more to be had.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, monitor: &Monitor) -> Result<bool> {
        block.clear();
        if self.is_inside_line {
            self.skip_line(block, monitor)?;
        }
        block.clear();
        if self.position > self.last_start {
            self.end();
            return Ok(false);
        }
        block.append(&mut self.carry);
        self.read_lines(block, monitor)?;
        if self.broken.is_some() {
            self.keep_tail(block, 0);
        }
        self.cut_after_last_start(block);
        self.position += block.len() as u64;
        Ok(!block.is_empty())
    }

    /// Why the text broke off, if it did: `line` is where.
    pub(super) fn failure(&mut self, line: u64) -> Result<()> {
        let Some(error) = self.broken.take() else {
            return Ok(());
        };
        if self.compression == Compression::Plain || is_foreign(&error) {
            return Err(stream_error(&self.name, error));
        }
        Err(Error::Parse {
            file: self.name.clone(),
            line,
            reason: format!("broken {} stream: {error}", self.compression.name()),
            text: excerpt(&self.carry),
        })
    }

    /// Passes over the text before the first line.
    fn skip_line(&mut self, scratch: &mut Vec<u8>, monitor: &Monitor) -> Result<()> {
        while self.skip > 0 && !self.ended {
            scratch.clear();
            let size = self.block_size;
            let wanted = usize::try_from(self.skip).map_or(size, |skip| skip.min(size));
            self.read(scratch, wanted, monitor)?;
            self.skip -= scratch.len() as u64;
        }
        while self.is_inside_line && !self.ended {
            scratch.clear();
            self.read(scratch, self.block_size, monitor)?;
            let newline = scratch.iter().position(|&byte| byte == b'\n');
            self.is_inside_line = newline.is_none();
            let end = newline.map_or(scratch.len(), |newline| newline + 1);
            self.carry.extend_from_slice(&scratch[end..]);
            self.position += end as u64;
        }
        Ok(())
    }

    /// Appends text to `block`, up to the last line end that was read or the end of the text.
    fn read_lines(&mut self, block: &mut Vec<u8>, monitor: &Monitor) -> Result<()> {
        while !self.ended {
            let old = block.len();
            // A long line is read in ever larger pieces, and each byte of it looked at once.
            self.read(block, old.max(self.block_size), monitor)?;
            if block[old..].contains(&b'\n') {
                self.keep_tail(block, old);
                break;
            }
            // Only a comment may hold NUL: the parser will say so. Reading on, the end of such a
            // line may be very far.
            if block[old..].contains(&0) && !block.contains(&b'#') {
                break;
            }
        }
        Ok(())
    }

    /// Keeps what follows the last line end after `from` for the next block.
    fn keep_tail(&mut self, block: &mut Vec<u8>, from: usize) {
        let newline = block[from..].iter().rposition(|&byte| byte == b'\n');
        let end = newline.map_or(from, |newline| from + newline + 1);
        self.carry.extend_from_slice(&block[end..]);
        block.truncate(end);
    }

    /// Drops the lines that start after `last_start`.
    fn cut_after_last_start(&mut self, block: &mut Vec<u8>) {
        let Ok(from) = usize::try_from(self.last_start - self.position) else {
            return;
        };
        let rest = block.get(from..).unwrap_or_default();
        if let Some(newline) = rest.iter().position(|&byte| byte == b'\n') {
            block.truncate(from + newline + 1);
            self.end();
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.broken = None;
        self.carry.clear();
    }

    /// Appends up to `wanted` bytes to `block`: fewer only at the end.
    fn read(&mut self, block: &mut Vec<u8>, wanted: usize, monitor: &Monitor) -> Result<()> {
        let mut filled = block.len();
        block.resize(filled + wanted, 0);
        while filled < block.len() && !self.ended {
            match self.text.read(&mut block[filled..]) {
                Ok(0) => self.ended = true,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.broken = Some(error);
                    self.ended = true;
                }
            }
            let taken = self.taken.load(Ordering::Relaxed);
            monitor.advance(taken - self.reported)?;
            self.reported = taken;
        }
        block.truncate(filled);
        Ok(())
    }
}

/// Whether an error came from below the decoder: from the system or from the caller's stream.
fn is_foreign(error: &io::Error) -> bool {
    let inner = error.get_ref();
    error.raw_os_error().is_some()
        || inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<StreamError>)
}

/// What a failed stream called `name` means to the caller.
pub(super) fn stream_error(name: &str, error: io::Error) -> Error {
    match error.downcast::<StreamError>() {
        Ok(StreamError(source)) => Error::Callback(source),
        Err(source) => Error::Io {
            file: name.to_owned(),
            source,
        },
    }
}
