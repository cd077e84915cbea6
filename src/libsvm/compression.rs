//! Compressed streams, recognised by file name or by their first bytes.

use std::io::{self, Read, Write};
use std::path::Path;

#[cfg(feature = "compression")]
use super::codecs;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    Plain,
    /// gzip, `.gz`.
    Gzip,
    /// bzip2, `.bz2`.
    Bzip2,
    /// xz, `.xz`.
    Xz,
    /// Zstandard, `.zst`.
    Zstd,
}

/// First bytes that suffice to recognise every format.
pub(super) const MAGIC_LEN: usize = 6;

impl Compression {
    /// The format named by the extension of `path`; `None` if it names none.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "bz2" => Some(Self::Bzip2),
            "xz" => Some(Self::Xz),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The format of a file with these first bytes, with which no line of text begins.
    pub fn from_magic(bytes: &[u8]) -> Self {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if bytes.starts_with(b"BZh") {
            Self::Bzip2
        } else if bytes.starts_with(b"\xfd7zXZ\0") {
            Self::Xz
        } else if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
            || matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
        {
            // The second is a skippable frame, with which parallel compressors begin.
            Self::Zstd
        } else {
            Self::Plain
        }
    }

    /// The format's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the text inside `stream`, which may be several compressed streams on end.
    pub(super) fn decoder(
        self,
        stream: impl Read + Send + 'static,
    ) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Plain => Ok(Box::new(stream)),
            format => codecs::decoder(format, stream),
        }
    }

    /// Returns a writer that compresses into `sink`.
    pub(super) fn encoder(self, sink: impl Write + Send + 'static) -> io::Result<Box<dyn Encoder>> {
        match self {
            Self::Plain => Ok(Box::new(Plain(sink))),
            format => codecs::encoder(format, sink),
        }
    }
}

/// A crate built without compression libraries: every compressed file is an error.
#[cfg(not(feature = "compression"))]
mod codecs {
    use super::{Compression, Encoder, Read, Write, io};

    pub(super) fn decoder(format: Compression, _: impl Read) -> io::Result<Box<dyn Read + Send>> {
        Err(missing(format))
    }

    pub(super) fn encoder(format: Compression, _: impl Write) -> io::Result<Box<dyn Encoder>> {
        Err(missing(format))
    }

    fn missing(format: Compression) -> io::Error {
        let message = format!(
            "{} files need the feature \"compression\" of the crate onefold",
            format.name()
        );
        io::Error::new(io::ErrorKind::Unsupported, message)
    }
}

/// A writer whose stream has an end marker.
pub(super) trait Encoder: Write + Send {
    /// Writes what is buffered, then the end of the stream.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Writes text as it is.
pub(super) struct Plain<W>(pub(super) W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write + Send> Encoder for Plain<W> {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.0.flush()
    }
}
