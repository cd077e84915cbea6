//! Compressed streams: of several parts, truncated, and misnamed.

use std::io::Write;

use onefold::libsvm::{Compression, Input, ReadOptions, load};
use onefold::{Error, Monitor};

use super::{load_text, outcome, twin};

const FORMATS: [Compression; 4] = [
    Compression::Gzip,
    Compression::Bzip2,
    Compression::Xz,
    Compression::Zstd,
];

fn compress(format: Compression, text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = match format {
        Compression::Plain => bytes.write_all(text),
        Compression::Gzip => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(&mut bytes, level);
            encoder
                .write_all(text)
                .and_then(|()| encoder.finish().map(drop))
        }
        Compression::Bzip2 => {
            let level = bzip2::Compression::default();
            let mut encoder = bzip2::write::BzEncoder::new(&mut bytes, level);
            encoder
                .write_all(text)
                .and_then(|()| encoder.finish().map(drop))
        }
        Compression::Xz => {
            let mut encoder = liblzma::write::XzEncoder::new(&mut bytes, 6);
            encoder
                .write_all(text)
                .and_then(|()| encoder.finish().map(drop))
        }
        Compression::Zstd => {
            let mut encoder = zstd::Encoder::new(&mut bytes, 0).expect("to memory");
            // As the command line tool does: without it, damage may go undetected.
            encoder.include_checksum(true).expect("supported");
            encoder
                .write_all(text)
                .and_then(|()| encoder.finish().map(drop))
        }
    };
    written.expect("to memory");
    bytes
}

fn text() -> String {
    let line = |i: usize| format!("{i} 1:{} 7:{}.5\n", i * i, i * 7919 % 1000);
    (1..400).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn streams_of_several_parts_are_read_to_the_end() {
    let (text, options) = (text(), ReadOptions::default());
    let expected = twin::read(text.as_bytes(), &options);
    for format in FORMATS {
        // Cut inside a line: parts are not lines.
        let (first, second) = text.as_bytes().split_at(1001);
        let whole = compress(format, text.as_bytes());
        let parts = [compress(format, first), compress(format, second)].concat();
        for bytes in [whole, parts] {
            assert_eq!(Compression::from_magic(&bytes), format);
            assert_eq!(
                outcome(load_text(&bytes, &options), &options),
                expected,
                "{format:?}"
            );
        }
    }
}

#[test]
fn ranges_are_counted_in_text() {
    let text = text();
    for (offset, length) in [
        (0, Some(500)),
        (501, Some(1000)),
        (3000, None),
        (1 << 20, None),
    ] {
        let options = ReadOptions {
            n_features: Some(8),
            offset,
            length,
            ..ReadOptions::default()
        };
        let expected = twin::read(text.as_bytes(), &options);
        for format in FORMATS {
            let bytes = compress(format, text.as_bytes());
            assert_eq!(
                outcome(load_text(&bytes, &options), &options),
                expected,
                "{format:?}"
            );
        }
    }
}

#[test]
fn a_stream_that_was_cut_off_is_never_a_matrix() {
    let text = &text()[..500];
    for format in FORMATS {
        let bytes = compress(format, text.as_bytes());
        for cut in 1..bytes.len() {
            match load_text(&bytes[..cut], &ReadOptions::default()) {
                Err(Error::Parse { file, line, .. }) => {
                    assert!(
                        file == "text" && (1..100).contains(&line),
                        "{format:?}, {cut}: {line}"
                    );
                }
                other => panic!("{format:?}, {cut} bytes: {other:?}"),
            }
        }
    }
    // The error names the line at which the stream ended.
    let first = compress(Compression::Zstd, b"11 1:1\n12 1:1\n13 1");
    let parts = [first, compress(Compression::Zstd, text.as_bytes())].concat();
    let error = load_text(&parts[..parts.len() - 20], &ReadOptions::default()).expect_err("cut");
    let expected = "text, line 3: broken zstd stream: ";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(error.to_string().ends_with(": \"13 1\""), "{error}");
}

#[test]
fn a_fault_before_the_cut_comes_first() {
    let bytes = compress(Compression::Gzip, format!("1 1:x\n{}", text()).as_bytes());
    let error = load_text(&bytes[..bytes.len() - 9], &ReadOptions::default()).expect_err("cut");
    assert_eq!(
        error.to_string(),
        "text, line 1: the value is not a number: \"1:x\""
    );
}

#[test]
fn damaged_streams_are_errors() {
    for format in FORMATS {
        let mut bytes = compress(format, text().as_bytes());
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        assert!(
            load_text(&bytes, &ReadOptions::default()).is_err(),
            "{format:?}"
        );
        let garbage = [compress(format, text().as_bytes()), b"garbage".to_vec()].concat();
        assert!(
            load_text(&garbage, &ReadOptions::default()).is_err(),
            "{format:?}"
        );
    }
}

#[test]
fn a_file_must_be_what_its_name_says() {
    let place = std::env::temp_dir().join(format!("onefold-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    for (name, bytes) in [
        ("plain.gz", &b"1 1:1\n"[..]),
        ("empty.xz", b""),
        ("short.zst", b"("),
    ] {
        let path = place.join(name);
        std::fs::write(&path, bytes).expect("written");
        let read = load(
            vec![Input::Path(path)],
            &ReadOptions::default(),
            &Monitor::new(),
        );
        let error = read.expect_err(name).to_string();
        assert!(
            error.contains(name) && error.contains("as its name says"),
            "{error}"
        );
    }
    // Without a name that says so, the first bytes do.
    let path = place.join("unnamed");
    std::fs::write(&path, compress(Compression::Bzip2, b"1 1:1\n")).expect("written");
    assert!(
        load(
            vec![Input::Path(path)],
            &ReadOptions::default(),
            &Monitor::new()
        )
        .is_ok()
    );
    std::fs::remove_dir_all(&place).expect("removed");
}
