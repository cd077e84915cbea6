//! Decoders and encoders of the compression libraries, behind the feature `compression`.

use std::io::{self, BufReader, Read, Write};

use super::compression::{Compression, Encoder, Plain};

/// Bytes a decoder reads at a time.
const BUFFER_BYTES: usize = 1 << 17;

/// Returns the text inside `stream`, which is compressed as `format`.
pub(super) fn decoder(
    format: Compression,
    stream: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
    Ok(match format {
        Compression::Plain => Box::new(stream),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(stream)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(stream)),
        Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(stream)),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(stream)?),
    })
}

/// Returns a writer that compresses into `sink`.
pub(super) fn encoder<W: Write + Send + 'static>(
    format: Compression,
    sink: W,
) -> io::Result<Box<dyn Encoder>> {
    Ok(match format {
        Compression::Plain => Box::new(Plain(sink)),
        Compression::Gzip => Box::new(flate2::write::GzEncoder::new(
            sink,
            flate2::Compression::default(),
        )),
        Compression::Bzip2 => Box::new(bzip2::write::BzEncoder::new(
            sink,
            bzip2::Compression::default(),
        )),
        Compression::Xz => Box::new(liblzma::write::XzEncoder::new(sink, 6)),
        Compression::Zstd => {
            let mut encoder = zstd::Encoder::new(sink, 0)?;
            // The other formats always have a checksum.
            encoder.include_checksum(true)?;
            Box::new(encoder)
        }
    })
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
