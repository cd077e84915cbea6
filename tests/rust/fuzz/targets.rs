//! What the fuzzers of `fuzz/` call and the tests replay: functions of bytes that must never panic.

use std::io::Cursor;

use ndarray::{Array1, Array2};
use onefold::data::{Csr, Dataset};
use onefold::learners::{Learner, LearnerSpec};
use onefold::libsvm::{
    Document, IndexArray, IndexBase, Input, Labels, Loaded, Matrix, ReadOptions, RowReader,
    ValueType, Values, load,
};
use onefold::{Monitor, Result};

/// Reads a LIBSVM file: four bytes of options, then its text. The result is an error, or arrays that
/// agree with each other, with those of its chunks of rows, and with what is read when they are
/// written.
pub(crate) fn libsvm(data: &[u8]) {
    let Some((&header, text)) = data.split_first_chunk() else {
        return;
    };
    let options = options(header);
    let whole = load_text(text, &options);
    if options.n_features.is_some() && options.base != IndexBase::Auto {
        let chunks = chunks(text, &options);
        match (&whole, chunks) {
            (Ok(whole), Ok(chunks)) => {
                let parts = chunks.iter().map(rows).fold(Rows::default(), Rows::join);
                assert_eq!(rows(&whole.matrices[0]), parts);
            }
            (Err(whole), Err(chunks)) => assert_eq!(whole.to_string(), chunks.to_string()),
            (whole, chunks) => panic!("{whole:?} but {chunks:?}"),
        }
    }
    if let Ok(loaded) = whole {
        check_matrix(&loaded, &options);
    }
}

/// Options of a reader from four bytes.
fn options([flags, block_size, n_features, offset]: [u8; 4]) -> ReadOptions {
    let is_set = |bit: u8| flags & (1 << bit) != 0;
    ReadOptions {
        multilabel: is_set(0),
        query_id: is_set(1),
        allow_nonfinite: is_set(2),
        precision: if is_set(3) {
            ValueType::Single
        } else {
            ValueType::Double
        },
        base: [IndexBase::Auto, IndexBase::Zero, IndexBase::One][usize::from(flags >> 4) % 3],
        n_features: (n_features > 0).then_some(n_features.into()),
        block_size: 1 + usize::from(block_size),
        offset: offset.into(),
        length: is_set(7).then_some(u64::from(flags >> 4)),
    }
}

fn load_text(text: &[u8], options: &ReadOptions) -> Result<Loaded<'static>> {
    load(vec![input(text)], options, &Monitor::new())
}

fn input(text: &[u8]) -> Input {
    Input::stream("text", Cursor::new(text.to_vec()))
}

fn chunks(text: &[u8], options: &ReadOptions) -> Result<Vec<Matrix<'static>>> {
    let monitor = Monitor::new();
    let mut reader = RowReader::new(vec![input(text)], 3, options, &monitor)?;
    let mut chunks = Vec::new();
    while let Some(chunk) = reader.next(&monitor)? {
        chunks.push(chunk);
    }
    Ok(chunks)
}

/// The contents of a matrix, values and labels as bits.
#[derive(Debug, Default, PartialEq)]
struct Rows {
    row_lengths: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<u64>,
    labels: Vec<u64>,
    label_counts: Vec<i64>,
    qids: Vec<i64>,
}

impl Rows {
    fn join(mut self, other: Self) -> Self {
        self.row_lengths.extend(other.row_lengths);
        self.indices.extend(other.indices);
        self.values.extend(other.values);
        self.labels.extend(other.labels);
        self.label_counts.extend(other.label_counts);
        self.qids.extend(other.qids);
        self
    }
}

fn rows(matrix: &Matrix<'_>) -> Rows {
    let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect();
    let differences = |ends: &[i64]| ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let label_ends: Vec<i64> = [0].iter().chain(&matrix.label_ends).copied().collect();
    Rows {
        row_lengths: differences(&wide(&matrix.indptr)),
        indices: wide(&matrix.indices),
        values: bits(&doubles(&matrix.values)),
        labels: bits(&matrix.labels),
        label_counts: differences(&label_ends),
        qids: matrix.qids.clone(),
    }
}

fn wide(indices: &IndexArray<'_>) -> Vec<i64> {
    match indices {
        IndexArray::I32(indices) => indices.iter().map(|&index| index.into()).collect(),
        IndexArray::I64(indices) => indices.to_vec(),
    }
}

fn doubles(values: &Values<'_>) -> Vec<f64> {
    match values {
        Values::Single(values) => values.iter().map(|&value| value.into()).collect(),
        Values::Double(values) => values.to_vec(),
    }
}

/// Checks that arrays are those of a CSR matrix, and that they read back when they are written.
fn check_matrix(loaded: &Loaded<'_>, options: &ReadOptions) {
    let matrix = &loaded.matrices[0];
    let (indptr, indices) = (wide(&matrix.indptr), wide(&matrix.indices));
    let values = doubles(&matrix.values);
    let n_features = usize::try_from(loaded.n_features).expect("of 64 bits");
    let csr = Csr::new(&indptr, &indices, &values, n_features).expect("valid arrays");
    let ends = matrix.label_ends.iter();
    let ends: Vec<usize> = ends
        .map(|&end| usize::try_from(end).expect("not negative"))
        .collect();
    let document = Document {
        rows: &csr,
        labels: if options.multilabel {
            Labels::Multi(&matrix.labels, &ends)
        } else {
            Labels::Single(&matrix.labels)
        },
        qids: options.query_id.then_some(&matrix.qids[..]),
        is_one_based: false,
        writes_zeros: true,
        header: b"",
    };
    let mut text = Vec::new();
    // A row without labels and features cannot be written; NaN has no digits.
    let is_nan = values
        .iter()
        .chain(&matrix.labels)
        .any(|value| value.is_nan());
    if document.write(&mut text, "text", &Monitor::new()).is_err() || is_nan {
        return;
    }
    let again = ReadOptions {
        n_features: Some(loaded.n_features.max(1)),
        base: IndexBase::Zero,
        allow_nonfinite: true,
        offset: 0,
        length: None,
        ..options.clone()
    };
    let again = load_text(&text, &again).expect("what was written");
    assert_eq!(rows(&again.matrices[0]), rows(matrix));
}

/// Restores a saved learner: a specification and the values of its state, as `postcard` encodes them.
/// The result is an error, or a learner in that state that can be used.
pub(crate) fn learner_state(data: &[u8]) {
    let Ok((spec, state)) = postcard::from_bytes::<(LearnerSpec, Vec<f64>)>(data) else {
        return;
    };
    let Ok(learner) = spec.restore(&state) else {
        return;
    };
    let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|v| v.to_bits()).collect() };
    assert_eq!(bits(&learner.state().to_vec()), bits(&state));
    use_learner(&*learner, &spec);
}

/// Calls every method of a learner. Errors are allowed: its state may be one that no rows lead to.
fn use_learner(learner: &dyn Learner, spec: &LearnerSpec) {
    const N_ROWS: usize = 4;
    let shape = (N_ROWS, spec.n_features);
    let x = Array2::from_shape_fn(shape, |(row, feature)| {
        ((row * 3 + feature) % 5) as f64 / 2.0
    });
    let codes: Array1<u32> = [0, 1].into_iter().cycle().take(N_ROWS).collect();
    // Learners without targets are restored with any number of them.
    let n_values = spec.n_targets.min(learner.state().len());
    let y = Array2::from_shape_fn((N_ROWS, n_values), |(row, _)| row as f64 - 1.5);
    let data = || Dataset::dense(x.view()).expect("valid");
    let classified = data().with_classes(codes.view(), spec.n_targets);
    let datasets = [Ok(data()), classified, data().with_values(y.view())];
    for data in datasets.into_iter().flatten() {
        let mut model = learner.fork().expect("forked");
        let mut outputs = vec![0.0; 2 * model.n_outputs()];
        let _ = model.evaluate(&data, &[2, 3], &mut outputs);
        let _ = model.fitted();
        let _ = model.update(&data, &[0, 1], None);
        let _ = model.evaluate(&data, &[2, 3], &mut outputs);
        if model.is_mergeable() {
            let _ = model.merge(learner);
        }
        let _ = model.fitted();
    }
}
