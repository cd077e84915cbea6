//! Paths and streams, cut into blocks of whole lines.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ReadOptions;
use super::compression::{Compression, MAGIC_LEN};
use super::parse::excerpt;
use super::pipe::PipeReader;
use crate::runtime::memory;
use crate::{Error, Monitor, Result};

/// An open file or an equivalent. It is sought only if [`ReadOptions::offset`] is given.
pub trait Stream: Read + Seek + Send {}

impl<T: Read + Seek + Send> Stream for T {}

/// An error of a [`Stream`] that the reader returns unchanged.
///
/// Wrapped in an [`io::Error`] it comes back as [`Error::Callback`].
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct StreamError(pub Box<dyn std::error::Error + Send + Sync>);

/// A file to read.
pub enum Input {
    /// A path. The compression is given by its extension, or else by its first bytes.
    Path(PathBuf),
    /// A name and an open file, read from its position. The compression is given by its first bytes.
    Stream(String, Box<dyn Stream>),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Input {
    /// An open file, called `name` in messages.
    pub fn stream(name: impl Into<String>, reader: impl Stream + 'static) -> Self {
        Self::Stream(name.into(), Box::new(reader))
    }

    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stream(name, _) => name.clone(),
        }
    }

    /// Number of bytes to read, before decompression; 0 for streams.
    pub(super) fn size(&self, options: &ReadOptions) -> u64 {
        let Self::Path(path) = self else { return 0 };
        let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        if Compression::from_path(path).is_some() {
            return size;
        }
        let after_offset = size.saturating_sub(options.offset);
        after_offset.min(options.length.unwrap_or(u64::MAX))
    }
}

/// Counts the bytes read.
struct CountingReader<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The text of one input in blocks of whole lines.
pub(super) struct LineBlocks {
    /// The name in messages.
    name: String,
    compression: Compression,
    text: Box<dyn Read + Send>,
    block_size: usize,
    /// Bytes read from the file so far, before decompression, and those reported to the monitor.
    bytes_read: Arc<AtomicU64>,
    bytes_reported: u64,
    /// Number of bytes to read, before decompression; 0 if not known.
    size: u64,
    /// Bytes of text to skip, and whether the rest of a line must be skipped after them.
    skip: u64,
    is_inside_line: bool,
    /// Start of the next block in the text, and the last byte at which a line may start.
    position: u64,
    last_start: u64,
    /// The beginning of a line whose end has not been read yet.
    partial_line: Vec<u8>,
    ended: bool,
    error: Option<io::Error>,
}

impl LineBlocks {
    /// Opens `input` and determines its compression.
    pub(super) fn open(input: Input, options: &ReadOptions, monitor: &Monitor) -> Result<Self> {
        let mut name = input.name();
        let size = input.size(options);
        let declared = match &input {
            Input::Path(path) => Compression::from_path(path),
            Input::Stream(..) => None,
        };
        let offset = options.offset;
        let prepare = || -> io::Result<_> {
            let mut file: Box<dyn Stream> = match input {
                Input::Path(path) if PipeReader::is_for(&path) => Box::new(PipeReader::open(path)?),
                Input::Path(path) => Box::new(File::open(path)?),
                Input::Stream(_, stream) => stream,
            };
            if offset > 0 {
                file.seek(SeekFrom::Start(0))?;
            }
            let mut head = read_head(&mut file, monitor)?;
            let found = Compression::from_magic(&head);
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
            let bytes_read = Arc::new(AtomicU64::new(0));
            let bytes = CountingReader {
                inner: Cursor::new(head).chain(file),
                count: Arc::clone(&bytes_read),
            };
            Ok((compression, compression.decoder(bytes)?, bytes_read, skip))
        };
        let (compression, text, bytes_read, skip) = prepare().map_err(|error| {
            let cancelled = monitor.check().err();
            cancelled.unwrap_or_else(|| stream_error(&name, error))
        })?;
        if offset > 0 {
            name = format!("{name} (lines counted after byte {offset})");
        }
        Ok(Self {
            name,
            compression,
            text,
            block_size: options.block_size.max(1),
            bytes_read,
            bytes_reported: 0,
            size,
            skip,
            is_inside_line: offset > 0,
            position: offset,
            last_start: options
                .length
                .map_or(u64::MAX, |length| offset.saturating_add(length)),
            partial_line: Vec::new(),
            ended: false,
            error: None,
        })
    }

    /// The name in messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The fraction of the file that has been read; 1 if its size is not known.
    pub(super) fn fraction_read(&self) -> f64 {
        let bytes_read = self.bytes_read.load(Ordering::Relaxed).max(1);
        bytes_read as f64 / self.size.max(bytes_read) as f64
    }

    /// Reads the next lines into `block`; false at the end or after an error of the stream.
    pub(super) fn next(&mut self, block: &mut Vec<u8>, monitor: &Monitor) -> Result<bool> {
        block.clear();
        if self.is_inside_line {
            self.skip_line(block, monitor)?;
        }
        block.clear();
        if self.position > self.last_start {
            self.finish();
            return Ok(false);
        }
        block.append(&mut self.partial_line);
        self.read_lines(block, monitor)?;
        if self.error.is_some() {
            self.set_aside_partial_line(block, 0);
        }
        self.truncate_after_last_start(block);
        self.position += block.len() as u64;
        Ok(!block.is_empty())
    }

    /// Returns the error that ended the text at `line`, if there was one.
    pub(super) fn take_error(&mut self, line: u64) -> Result<()> {
        let Some(error) = self.error.take() else {
            return Ok(());
        };
        if self.compression == Compression::Plain || is_from_stream(&error) {
            return Err(stream_error(&self.name, error));
        }
        Err(Error::Parse {
            file: self.name.clone(),
            line,
            reason: format!("broken {} stream: {error}", self.compression.name()),
            text: excerpt(&self.partial_line),
        })
    }

    /// Skips the text before the first line.
    fn skip_line(&mut self, scratch: &mut Vec<u8>, monitor: &Monitor) -> Result<()> {
        while self.skip > 0 && !self.ended {
            scratch.clear();
            let size = self.block_size;
            let n_bytes = usize::try_from(self.skip).map_or(size, |skip| skip.min(size));
            self.read(scratch, n_bytes, monitor)?;
            self.skip -= scratch.len() as u64;
        }
        while self.is_inside_line && !self.ended {
            scratch.clear();
            self.read(scratch, self.block_size, monitor)?;
            let newline = scratch.iter().position(|&byte| byte == b'\n');
            self.is_inside_line = newline.is_none();
            let end = newline.map_or(scratch.len(), |newline| newline + 1);
            self.partial_line.extend_from_slice(&scratch[end..]);
            self.position += end as u64;
        }
        Ok(())
    }

    /// Appends text to `block`, up to the last line end that was read or the end of the text.
    fn read_lines(&mut self, block: &mut Vec<u8>, monitor: &Monitor) -> Result<()> {
        while !self.ended {
            let old = block.len();
            // A long line is read in pieces of doubling size, so that each byte is scanned once.
            self.read(block, old.max(self.block_size), monitor)?;
            if block[old..].contains(&b'\n') {
                self.set_aside_partial_line(block, old);
                break;
            }
            // Only a comment may contain NUL, and a line of NUL (a sparse file) may be very long: the
            // block ends here, and the parser reports the error.
            if block[old..].contains(&0) && !block.contains(&b'#') {
                break;
            }
        }
        Ok(())
    }

    /// Moves what follows the last line end after `from` to the next block.
    fn set_aside_partial_line(&mut self, block: &mut Vec<u8>, from: usize) {
        let newline = block[from..].iter().rposition(|&byte| byte == b'\n');
        let end = newline.map_or(from, |newline| from + newline + 1);
        self.partial_line.extend_from_slice(&block[end..]);
        block.truncate(end);
    }

    /// Drops the lines that start after `last_start`.
    fn truncate_after_last_start(&mut self, block: &mut Vec<u8>) {
        let Ok(from) = usize::try_from(self.last_start - self.position) else {
            return;
        };
        let rest = block.get(from..).unwrap_or_default();
        if let Some(newline) = rest.iter().position(|&byte| byte == b'\n') {
            block.truncate(from + newline + 1);
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.ended = true;
        self.error = None;
        self.partial_line.clear();
    }

    /// Appends `n_bytes` to `block`, fewer only at the end.
    fn read(&mut self, block: &mut Vec<u8>, n_bytes: usize, monitor: &Monitor) -> Result<()> {
        let mut filled = block.len();
        memory::reserve("a line of the file", block, n_bytes)?;
        block.resize(filled + n_bytes, 0);
        while filled < block.len() && !self.ended {
            match self.text.read(&mut block[filled..]) {
                Ok(0) => self.ended = true,
                Ok(n) => filled += n,
                Err(error) if waits(&error) => {}
                Err(error) => {
                    self.error = Some(error);
                    self.ended = true;
                }
            }
            let bytes_read = self.bytes_read.load(Ordering::Relaxed);
            monitor.advance(bytes_read - self.bytes_reported)?;
            self.bytes_reported = bytes_read;
        }
        block.truncate(filled);
        Ok(())
    }
}

/// The first bytes of a file, all of them if there are fewer. [`io::ErrorKind::WouldBlock`] if the work
/// was cancelled.
fn read_head(file: &mut impl Read, monitor: &Monitor) -> io::Result<Vec<u8>> {
    let mut head = vec![0; MAGIC_LEN];
    let mut n_read = 0;
    while n_read < head.len() {
        match file.read(&mut head[n_read..]) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if waits(&error) && monitor.check().is_ok() => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(n_read);
    Ok(head)
}

/// Whether reading should be tried again.
fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}

/// Whether an error came from the system or the caller's stream, not from the decoder.
fn is_from_stream(error: &io::Error) -> bool {
    let inner = error.get_ref();
    error.raw_os_error().is_some()
        || inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<StreamError>)
}

/// Converts an error of the stream `name`.
pub(super) fn stream_error(name: &str, error: io::Error) -> Error {
    match error.downcast::<StreamError>() {
        Ok(StreamError(source)) => Error::Callback(source),
        Err(source) => Error::Io {
            file: name.to_owned(),
            source,
        },
    }
}
