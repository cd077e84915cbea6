//! LIBSVM files: the reader against its twin, on all kinds of bytes; the writer against the reader.

#[cfg(feature = "compression")]
mod compressed;
mod twin;
mod written;

use std::fmt::Write;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::LazyLock;

use onefold::libsvm::{
    Buffers, GrowableColumn, IndexArray, IndexBase, Input, Loaded, Matrix, ReadOptions, RowReader,
    StreamError, ValueType, Values, load, load_into,
};
use onefold::{Error, Monitor, Result};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rayon::{ThreadPool, ThreadPoolBuilder};
use twin::{Contents, Wrong};

/// Pools of one and of three threads.
static POOLS: LazyLock<[ThreadPool; 2]> = LazyLock::new(|| {
    [1, 3].map(|n| {
        let builder = ThreadPoolBuilder::new().num_threads(n);
        builder.build().expect("threads")
    })
});

fn load_text(text: &[u8], options: &ReadOptions) -> Result<Loaded<'static>> {
    let input = Input::stream("text", Cursor::new(text.to_vec()));
    load(vec![input], options, &Monitor::new())
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).expect("small")
}

fn unsigned(number: i64) -> usize {
    usize::try_from(number).expect("not negative")
}

fn ints(ints: &IndexArray<'_>) -> Vec<i64> {
    match ints {
        IndexArray::I32(ints) => ints.iter().map(|&int| int.into()).collect(),
        IndexArray::I64(ints) => ints.to_vec(),
    }
}

/// A matrix in the twin's form.
fn rows(matrix: &Matrix<'_>, n_features: u64, options: &ReadOptions) -> Contents {
    let (indptr, indices) = (ints(&matrix.indptr), ints(&matrix.indices));
    let values: Vec<f64> = match &matrix.values {
        Values::Single(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Double(values) => values.to_vec(),
    };
    let slice = |ends: &[i64]| unsigned(ends[0])..unsigned(ends[1]);
    let row = |ends: &[i64]| {
        let range = slice(ends);
        let bits = values[range.clone()].iter().map(|value| value.to_bits());
        indices[range].iter().copied().zip(bits).collect()
    };
    let mut label_ends: Vec<i64> = (0..=signed(matrix.labels.len())).collect();
    if options.multilabel {
        label_ends.truncate(1);
        label_ends.extend(&matrix.label_ends);
    }
    let labels = |ends: &[i64]| {
        let labels = matrix.labels[slice(ends)].iter();
        labels.map(|label| label.to_bits()).collect()
    };
    Contents {
        n_features,
        entries: indptr.windows(2).map(row).collect(),
        labels: label_ends.windows(2).map(labels).collect(),
        qids: matrix.qids.clone(),
    }
}

fn outcome(
    loaded: Result<Loaded<'_>>,
    options: &ReadOptions,
) -> std::result::Result<Contents, Wrong> {
    match loaded {
        Ok(loaded) => Ok(rows(&loaded.matrices[0], loaded.n_features, options)),
        Err(Error::Parse { line, .. }) => Err(Wrong::Line(line)),
        Err(Error::Parameter {
            name: "n_features", ..
        }) => Err(Wrong::Features),
        Err(other) => panic!("unexpected: {other}"),
    }
}

/// A fixed sequence of cases.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Options of every kind, mostly such that a plausible file with these features can be read.
fn options(multilabel: bool, query_id: bool) -> impl Strategy<Value = ReadOptions> {
    let n_features = prop_oneof![1 => 1..12_u64, 2 => Just(1 << 40)];
    let limits = (
        prop_oneof![1 => Just(None), 1 => n_features.prop_map(Some)],
        prop_oneof![4 => Just(0), 1 => 0..80_u64],
        prop_oneof![4 => Just(None), 1 => (0..80_u64).prop_map(Some)],
        prop_oneof![3 => 1..40_usize, 1 => Just(ReadOptions::default().block_size)],
    );
    let base = prop_oneof![2 => Just(IndexBase::Auto), 1 => Just(IndexBase::Zero), 1 => Just(IndexBase::One)];
    let precision = prop_oneof![Just(ValueType::Double), Just(ValueType::Single)];
    let flips = (
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        any::<bool>(),
    );
    (limits, base, precision, flips).prop_map(move |(limits, base, precision, flips)| ReadOptions {
        n_features: limits.0,
        offset: limits.1,
        length: limits.2,
        block_size: limits.3,
        base,
        precision,
        multilabel: multilabel ^ flips.0,
        query_id: query_id ^ flips.1,
        allow_nonfinite: flips.2,
    })
}

fn number() -> impl Strategy<Value = String> {
    let odd = [
        "nan", "-inf", "Infinity", "1e999", "1e39", "-0", "1e-400", "1_0", "0x1", "",
    ];
    prop_oneof![
        50 => (-30..3000_i32).prop_map(|number| number.to_string()),
        25 => any::<f64>().prop_map(|number| format!("{number:e}")),
        25 => "[-+]?[0-9]{0,20}[.][0-9]{1,20}",
        1 => prop::sample::select(odd.to_vec()).prop_map(str::to_owned),
        1 => "[-+0-9.eE_xnai]{0,6}",
    ]
}

/// A line that is nearly always right.
fn line(multilabel: bool, query_id: bool) -> impl Strategy<Value = String> {
    let labels = prop::collection::vec(
        number(),
        usize::from(!multilabel)..=if multilabel { 3 } else { 1 },
    );
    let qid = prop::sample::select(if query_id {
        vec![" qid:7", "\tqid:-12"]
    } else {
        vec![""]
    });
    let step = prop_oneof![60 => 1..4_i64, 1 => -1..1_i64];
    let entries = prop::collection::vec((step, number()), 0..6);
    let first = prop_oneof![20 => 0..3_i64, 1 => Just(i64::from(i32::MAX) - 2)];
    let ends = ["\n", "\r\n", " \n", " # 1:2\n", "#\n", "\n\n", "\x0b\x0c\n"];
    let end = prop::sample::select(ends.to_vec());
    (labels, qid, first, entries, end).prop_map(|(labels, qid, first, entries, end)| {
        let mut line = labels.join(",") + qid;
        let mut index = first;
        for (step, value) in entries {
            index += step;
            let _ = write!(line, " {index}:{value}");
        }
        line + end
    })
}

/// Bytes of all kinds: arbitrary, of the right alphabet, and lines with a few bytes changed.
fn bytes(multilabel: bool, query_id: bool) -> impl Strategy<Value = Vec<u8>> {
    let letters = prop::sample::select(b"0123456789::::..--+eE,   \n\n\r\t#qidnaf_\0".to_vec());
    let changes = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ];
    let lines = prop::collection::vec(line(multilabel, query_id), 0..8);
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..150),
        1 => prop::collection::vec(letters, 0..150),
        4 => (lines, changes, any::<bool>()).prop_map(|(lines, changes, has_end)| {
            let mut text = lines.concat().into_bytes();
            for (at, byte) in changes {
                if !text.is_empty() {
                    let at = at.index(text.len());
                    text[at] = byte;
                }
            }
            if !has_end {
                text.pop();
            }
            text
        }),
    ]
}

fn files() -> impl Strategy<Value = (Vec<u8>, ReadOptions)> {
    let kinds = (prop::bool::weighted(0.3), prop::bool::weighted(0.3));
    kinds.prop_flat_map(|(multilabel, query_id)| {
        (bytes(multilabel, query_id), options(multilabel, query_id))
    })
}

proptest! {
    #![proptest_config(cases(10_000))]

    /// Whatever the bytes, the options, the blocks and the threads: no panic, no hang, and the
    /// same rows or the same first bad line as the twin.
    #[test]
    fn any_bytes_give_what_the_twin_gives((text, options) in files()) {
        let expected = twin::read(&text, &options);
        for pool in POOLS.iter() {
            let loaded = pool.install(|| load_text(&text, &options));
            prop_assert_eq!(&outcome(loaded, &options), &expected);
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    /// Chunks of rows, of one file or of several, concatenate to all rows.
    #[test]
    fn chunks_are_the_rows_in_order(
        texts in prop::collection::vec(bytes(false, false), 1..4),
        n_rows in 1..5_usize,
        block_size in 1..40_usize,
    ) {
        let options = ReadOptions {
            n_features: Some(1 << 40),
            base: IndexBase::Zero,
            allow_nonfinite: true,
            block_size,
            ..ReadOptions::default()
        };
        let inputs = || texts.iter().map(|text| Input::stream("text", Cursor::new(text.clone())));
        let whole = load(inputs().collect(), &options, &Monitor::new());
        let chunks = chunks(inputs().collect(), n_rows, &options);
        match (whole, chunks) {
            (Ok(whole), Ok(chunks)) => {
                let (last, before) = chunks.split_last().map_or((None, &[][..]), |(l, b)| (Some(l), b));
                prop_assert!(before.iter().all(|chunk| chunk.n_rows() == n_rows));
                prop_assert!(last.is_none_or(|chunk| (1..=n_rows).contains(&chunk.n_rows())));
                prop_assert_eq!(together(&whole.matrices), together(&chunks));
            }
            (Err(whole), Err(chunks)) => prop_assert_eq!(whole.to_string(), chunks.to_string()),
            (whole, chunks) => panic!("{whole:?} but {chunks:?}"),
        }
    }
}

fn chunks(
    inputs: Vec<Input>,
    n_rows: usize,
    options: &ReadOptions,
) -> Result<Vec<Matrix<'static>>> {
    let monitor = Monitor::new();
    let mut reader = RowReader::new(inputs, n_rows, options, &monitor)?;
    let mut chunks = Vec::new();
    while let Some(chunk) = reader.next(&monitor)? {
        chunks.push(chunk);
    }
    Ok(chunks)
}

fn together(matrices: &[Matrix<'_>]) -> Contents {
    let mut all = Contents::default();
    for matrix in matrices {
        let part = rows(matrix, 0, &ReadOptions::default());
        all.entries.extend(part.entries);
        all.labels.extend(part.labels);
    }
    all
}

#[test]
fn ranges_that_follow_one_another_share_no_line_and_miss_none() {
    let text = b"1 1:1\n# a comment that is long\n\n2 2:2\r\n3 3:3\n\n4 4:4";
    let whole = ReadOptions {
        n_features: Some(10),
        base: IndexBase::Zero,
        ..ReadOptions::default()
    };
    let expected = twin::read(text, &whole).expect("valid").labels;
    for length in 1..60_usize {
        let mut found = Vec::new();
        for offset in (0..60_u64).step_by(length) {
            let options = ReadOptions {
                offset,
                length: Some(length as u64),
                ..whole.clone()
            };
            found.extend(
                outcome(load_text(text, &options), &options)
                    .expect("valid")
                    .labels,
            );
        }
        assert_eq!(found, expected, "ranges of {length} bytes");
    }
}

#[test]
fn the_first_bad_line_is_named_whatever_the_threads() {
    let mut lines = vec!["1 1:1 2:2\n"; 5000];
    lines[1233] = "1 2:2 1:1\n";
    lines[1240] = "bad\n";
    lines[4000] = "1 1:x\n";
    let text = lines.concat();
    for block_size in [100, 1000, 1 << 17] {
        for pool in POOLS.iter() {
            let options = ReadOptions {
                block_size,
                ..ReadOptions::default()
            };
            let error = pool
                .install(|| load_text(text.as_bytes(), &options))
                .expect_err("bad");
            let expected = "text, line 1234: decreasing feature index: \"1:1\"";
            assert_eq!(error.to_string(), expected);
        }
    }
    // Lines are counted from the first one that is read.
    let options = ReadOptions {
        offset: 10 * 1000 - 1,
        n_features: Some(3),
        ..ReadOptions::default()
    };
    let error = load_text(text.as_bytes(), &options).expect_err("bad");
    let expected =
        "text (lines counted after byte 9999), line 234: decreasing feature index: \"1:1\"";
    assert_eq!(error.to_string(), expected);
}

/// Endless NUL after a few bytes.
struct Hole(&'static [u8]);

impl Read for Hole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(0);
        self.0.read(buffer).map(|_| buffer.len())
    }
}

impl Seek for Hole {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[test]
fn a_line_of_nul_is_not_read_to_its_end() {
    for text in [&b""[..], b"1 ", b"1 1:", b"1 1:1 2"] {
        let input = Input::stream("hole", Hole(text));
        let error = load(vec![input], &ReadOptions::default(), &Monitor::new()).expect_err("bad");
        assert!(error.to_string().starts_with("hole, line 1: "), "{error}");
    }
}

#[test]
fn borrowed_buffers_change_nothing() {
    let text = b"1 1:1 7:0.5\n2 3:4\n-3 1:2 2:3 3:4\n";
    let expected = load_text(text, &ReadOptions::default()).expect("valid");
    for n_items in [0, 3, 6, 100] {
        let (mut values, mut indices) = (vec![f64::NAN; n_items], vec![-1; n_items]);
        let buffers = Buffers {
            values: Values::Double(GrowableColumn::Borrowed(&mut values, 0)),
            indices: GrowableColumn::Borrowed(&mut indices, 0),
        };
        let input = Input::stream("text", Cursor::new(text));
        let options = ReadOptions {
            block_size: 1,
            ..ReadOptions::default()
        };
        let loaded = load_into(vec![(input, buffers)], &options, &Monitor::new()).expect("valid");
        assert_eq!(loaded.matrices, expected.matrices);
        let IndexArray::I32(indices) = &loaded.matrices[0].indices else {
            panic!("32-bit");
        };
        assert_eq!(
            matches!(indices, GrowableColumn::Borrowed(_, 6)),
            n_items >= 6
        );
    }
}

#[test]
fn long_texts_are_shortened() {
    let error = load_text(&[b'x'; 1000], &ReadOptions::default())
        .expect_err("bad")
        .to_string();
    assert!(error.contains("xxx…\"") && error.len() < 150, "{error}");
}

#[test]
fn several_files_agree_on_the_first_feature_and_their_number() {
    let load_all = |texts: &[&str]| {
        let inputs = texts
            .iter()
            .map(|&text| Input::stream("text", Cursor::new(text.to_owned())));
        let loaded =
            load(inputs.collect(), &ReadOptions::default(), &Monitor::new()).expect("valid");
        let indices = loaded.matrices.iter().map(|matrix| ints(&matrix.indices));
        (loaded.n_features, indices.collect::<Vec<_>>())
    };
    assert_eq!(
        load_all(&["1 1:1", "1 2:1 5:1"]),
        (5, vec![vec![0], vec![1, 4]])
    );
    assert_eq!(
        load_all(&["1 1:1", "1 0:1 5:1"]),
        (6, vec![vec![1], vec![0, 5]])
    );
    // As in scikit-learn, a file without indices leaves those of the others as they are.
    assert_eq!(load_all(&["1 1:1", "1"]), (2, vec![vec![1], vec![]]));
    assert_eq!(load_all(&[""]), (1, vec![vec![]]));
}

#[test]
fn indices_have_64_bits_only_where_they_must() {
    let has_64_bits = |text: &str, options: &ReadOptions| {
        let loaded = load_text(text.as_bytes(), options).expect("valid");
        let matrix = &loaded.matrices[0];
        let widths =
            [&matrix.indptr, &matrix.indices].map(|ints| matches!(ints, IndexArray::I64(_)));
        assert_eq!(widths[0], widths[1]);
        widths[0]
    };
    let zero_based = ReadOptions {
        base: IndexBase::Zero,
        ..ReadOptions::default()
    };
    // 2^31 - 1 features are the most that 32 bits count.
    assert!(!has_64_bits("1 1:1 2147483647:1", &ReadOptions::default()));
    assert!(has_64_bits("1 1:1 2147483647:1", &zero_based));
    assert!(has_64_bits(
        "1 1:1\n1 2147483648:1",
        &ReadOptions::default()
    ));
    let declared = |n_features| ReadOptions {
        n_features: Some(n_features),
        ..ReadOptions::default()
    };
    assert!(!has_64_bits("1 1:1", &declared(2_147_483_647)));
    assert!(has_64_bits("1 1:1", &declared(2_147_483_648)));
    let loaded = load_text(b"1 7:1 9223372036854775806:2", &ReadOptions::default()).expect("valid");
    assert_eq!(ints(&loaded.matrices[0].indices), [6, i64::MAX - 2]);
    assert_eq!(loaded.n_features, i64::MAX as u64 - 1);
}

#[test]
fn work_stops_when_it_is_cancelled() {
    let monitor = Monitor::new();
    monitor.cancel();
    let input = Input::stream("text", Cursor::new("1 1:1\n"));
    let stopped = load(vec![input], &ReadOptions::default(), &monitor);
    assert!(matches!(stopped, Err(Error::Interrupted)));
}

/// Fails after its bytes.
struct Failing(Cursor<&'static [u8]>);

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other(StreamError("out of paper".into()))),
            n => Ok(n),
        }
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

fn check_that_the_error_of_a_stream_comes_back(bytes: &'static [u8]) {
    let input = Input::stream("text", Failing(Cursor::new(bytes)));
    match load(vec![input], &ReadOptions::default(), &Monitor::new()) {
        Err(Error::Callback(source)) => assert_eq!(source.to_string(), "out of paper"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_stream_raises_reaches_the_caller() {
    check_that_the_error_of_a_stream_comes_back(b"1 1:1\n2 1:2\n");
    // While the first bytes are read.
    check_that_the_error_of_a_stream_comes_back(b"\x1f\x8b");
}

#[cfg(feature = "compression")]
#[test]
fn what_a_stream_raises_passes_through_the_decoder() {
    // A header of gzip, then the error.
    check_that_the_error_of_a_stream_comes_back(b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
}

#[cfg(not(feature = "compression"))]
#[test]
fn without_the_feature_a_compressed_file_is_an_error_that_names_it() {
    for (magic, format) in [
        (&b"\x1f\x8b"[..], "gzip"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
    ] {
        let error = load_text(magic, &ReadOptions::default()).expect_err("compressed");
        let expected =
            format!("text: {format} files need the feature \"compression\" of the crate onefold");
        assert_eq!(error.to_string(), expected);
    }
}
