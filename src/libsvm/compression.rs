//! Compressed streams, told apart by file name or by their first bytes.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
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

/// As many first bytes as tell every format.
pub(super) const MAGIC_LEN: usize = 6;

/// How much a decoder reads at a time.
const BUFFER: usize = 1 << 17;

impl Compression {
    /// What the extension of `path` says; `None` when it is not one of a compressed file.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "bz2" => Some(Self::Bzip2),
            "xz" => Some(Self::Xz),
            "zst" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// What the first bytes of a file say. No line of text begins with any of these.
    pub fn of_magic(bytes: &[u8]) -> Self {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if bytes.starts_with(b"BZh") {
            Self::Bzip2
        } else if bytes.starts_with(b"\xfd7zXZ\0") {
            Self::Xz
        } else if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
            || matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
        {
            // Parallel compressors begin with a frame to be skipped: the second of the two.
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

    /// The text inside `stream`, which may be several compressed streams on end.
    pub(super) fn decoder(
        self,
        stream: impl Read + Send + 'static,
    ) -> io::Result<Box<dyn Read + Send>> {
        if self == Self::Plain {
            return Ok(Box::new(stream));
        }
        let stream = BufReader::with_capacity(BUFFER, stream);
        Ok(match self {
            Self::Plain => Box::new(stream),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(stream)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(stream)),
            Self::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(stream)),
            Self::Zstd => Box::new(zstd::Decoder::with_buffer(stream)?),
        })
    }

    /// A writer that compresses into `sink`.
    pub(super) fn encoder<W: Write + Send + 'static>(
        self,
        sink: W,
    ) -> io::Result<Box<dyn Encoder>> {
        Ok(match self {
            Self::Plain => Box::new(Plain(sink)),
            Self::Gzip => Box::new(flate2::write::GzEncoder::new(
                sink,
                flate2::Compression::default(),
            )),
            Self::Bzip2 => Box::new(bzip2::write::BzEncoder::new(
                sink,
                bzip2::Compression::default(),
            )),
            Self::Xz => Box::new(liblzma::write::XzEncoder::new(sink, 6)),
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(sink, 0)?;
                // The other formats have one anyway.
                encoder.include_checksum(true)?;
                Box::new(encoder)
            }
        })
    }
}

/// A writer that has an end to write.
pub(super) trait Encoder: Write + Send {
    /// Writes what is left, and the end of the stream.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

struct Plain<W>(W);

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

impl<W: Write + Send> Encoder for flate2::write::GzEncoder<W> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        (*self).finish()?.flush()
    }
}

impl<W: Write + Send> Encoder for bzip2::write::BzEncoder<W> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        (*self).finish()?.flush()
    }
}

impl<W: Write + Send> Encoder for liblzma::write::XzEncoder<W> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        (*self).finish()?.flush()
    }
}

impl<W: Write + Send> Encoder for zstd::Encoder<'_, W> {
    fn finish(self: Box<Self>) -> io::Result<()> {
        (*self).finish()?.flush()
    }
}
