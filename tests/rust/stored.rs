//! Rows on disk: every learner has the bits of rows in memory.

use std::fs;
use std::path::{Path, PathBuf};

use onefold::data::{Csr, Dataset, Rows};
use onefold::learners::{Order, Pegasos, PegasosOptions};
use onefold::merge::Merge;
use onefold::stored::{self, Element, StoredArray, StoredRows, Streaming};
use onefold::tree::{Placement, Strategy, Tree};
use onefold::virtual_cv::{LinearModel, Virtual};
use onefold::{Engine, Error, Folds, Monitor};
use tempfile::TempDir;

use crate::every_learner::{Case, N_CLASSES, Targets, every_learner};
use crate::sets::Set;

const N_ROWS: usize = 90;
const N_FEATURES: usize = 6;

/// The arrays of a set as files.
struct Files {
    directory: TempDir,
    set: Set,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            directory: TempDir::new().expect("directory"),
            set: Set::counts(5, N_ROWS, N_FEATURES, N_CLASSES),
        };
        let (mut dense, mut single) = (vec![], vec![]);
        let (mut values, mut indptr, mut indices, mut wide) = (vec![], vec![], vec![], vec![]);
        let mut n_stored = 0_i32;
        indptr.extend(n_stored.to_ne_bytes());
        for row in files.set.dense() {
            for (feature, value) in (0_i32..).zip(row) {
                dense.extend(value.to_ne_bytes());
                #[allow(clippy::cast_possible_truncation)] // small integers
                single.extend((*value as f32).to_ne_bytes());
                if *value != 0.0 {
                    values.extend(value.to_ne_bytes());
                    indices.extend(feature.to_ne_bytes());
                    wide.extend(i64::from(feature).to_ne_bytes());
                    n_stored += 1;
                }
            }
            indptr.extend(n_stored.to_ne_bytes());
        }
        for (name, bytes) in [
            ("dense", dense),
            ("single", single),
            ("values", values),
            ("indptr", indptr),
            ("indices", indices),
            ("wide", wide),
        ] {
            // A header that is skipped.
            fs::write(files.path(name), [&[7; 16][..], &bytes].concat()).expect("written");
        }
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn array(&self, name: &str, element: Element) -> StoredArray {
        let size = if matches!(element, Element::F32 | Element::I32) {
            4
        } else {
            8
        };
        let n_bytes = fs::metadata(self.path(name)).expect("file").len() - 16;
        StoredArray::open(&self.path(name), 16, element, n_bytes / size).expect("valid")
    }

    /// Dense rows in double and single precision, CSR rows with narrow and wide indices.
    fn layouts(&self) -> [StoredRows; 4] {
        let csr = |name, element| {
            let indptr = self.array("indptr", Element::I32);
            let indices = self.array(name, element);
            let values = self.array("values", Element::F64);
            StoredRows::csr([indptr, indices, values], N_ROWS, N_FEATURES).expect("valid")
        };
        let dense = |name, element| {
            StoredRows::dense(self.array(name, element), N_ROWS, N_FEATURES).expect("valid")
        };
        [
            dense("dense", Element::F64),
            dense("single", Element::F32),
            csr("indices", Element::I32),
            csr("wide", Element::I64),
        ]
    }
}

fn streaming(directory: &Path, memory_bytes: u64) -> Streaming {
    Streaming {
        memory_bytes,
        temp_dir: directory.to_owned(),
    }
}

/// Rows on disk with the targets and weights of a set.
fn with_targets<'a>(
    rows: &'a StoredRows,
    streaming: &'a Streaming,
    set: &'a Set,
    targets: Targets,
) -> Dataset<'a> {
    let rows = Dataset::stored(rows, streaming);
    let data = match targets {
        Targets::None => rows,
        Targets::Classes => rows.with_classes(set.codes(), N_CLASSES).expect("valid"),
        Targets::Values => {
            let values = set.values().insert_axis(ndarray::Axis(1));
            rows.with_values(values).expect("valid")
        }
    };
    data.with_weights(set.weights()).expect("valid")
}

fn every_folds() -> Vec<Folds> {
    vec![
        Folds::contiguous(N_ROWS, 2).expect("valid"),
        Folds::contiguous(N_ROWS, 7).expect("valid"),
        Folds::shuffled(N_ROWS, 5, 3).expect("valid"),
        Folds::leave_one_out(N_ROWS).expect("valid"),
    ]
}

fn on_threads(n: usize, work: impl FnOnce() + Send) {
    let threads = rayon::ThreadPoolBuilder::new().num_threads(n).build();
    threads.expect("threads").install(work);
}

/// Folds that are larger than blocks, smaller, and of one row; several orders and placements.
#[test]
fn every_learner_has_the_bits_of_rows_in_memory() {
    let files = Files::new();
    let layouts = files.layouts();
    let trees = [
        Tree::in_given_order(),
        Tree {
            order: Order::Once { seed: 4 },
            ..Tree::default()
        },
        Tree {
            strategy: Strategy::Copy,
            placement: Placement::Random { seed: 2 },
            order: Order::Fixed,
        },
    ];
    for (number, case) in every_learner(N_FEATURES).iter().enumerate() {
        let in_memory = files.set.weighted(case.targets.of(&files.set));
        for folds in every_folds() {
            let tree = trees[number % trees.len()];
            for (layout, stored) in layouts.iter().enumerate() {
                let data = &in_memory[usize::from(layout > 1)];
                check(case, tree, (data, stored), &folds, &files);
            }
        }
    }
}

fn check(
    case: &Case,
    tree: Tree,
    (data, rows): (&Dataset<'_>, &StoredRows),
    folds: &Folds,
    files: &Files,
) {
    let learner = &*case.learner;
    let expected = tree
        .cross_validate(learner, data, folds)
        .expect("in memory");
    let merged = learner.is_mergeable().then(|| {
        Merge::default()
            .cross_validate(learner, data, folds)
            .expect("merged")
    });
    for (n_threads, memory_bytes) in [(1, 4_000), (2, 9_000), (1, 1 << 20)] {
        on_threads(n_threads, || {
            let streaming = streaming(files.directory.path(), memory_bytes);
            let stored = with_targets(rows, &streaming, &files.set, case.targets);
            let found = tree.cross_validate(learner, &stored, folds);
            let found = found.expect("stored");
            assert_eq!(found.outputs, expected.outputs, "{}, {folds:?}", case.name);
            assert_eq!(found.cost.rows_fed, expected.cost.rows_fed, "{}", case.name);
            if let Some(merged) = &merged {
                let found = Merge::default()
                    .cross_validate(learner, &stored, folds)
                    .expect("stored");
                assert_eq!(found.outputs, merged.outputs, "{}, {folds:?}", case.name);
            }
        });
    }
}

/// A fit to rows on disk is that of all rows in memory.
#[test]
fn fits_have_the_bits_of_rows_in_memory() {
    let files = Files::new();
    let [dense, ..] = files.layouts();
    for case in every_learner(N_FEATURES) {
        let [data, _] = files.set.weighted(case.targets.of(&files.set));
        let mut expected = case.learner.fork().expect("forked");
        let rows: Vec<usize> = (0..N_ROWS).collect();
        expected.update(&data, &rows, None).expect("updated");
        let mut fitted = case.learner.fork().expect("forked");
        let streaming = streaming(files.directory.path(), 6_000);
        let stored = with_targets(&dense, &streaming, &files.set, case.targets);
        stored::fit(&mut *fitted, &stored, None, &Monitor::new()).expect("fitted");
        assert_eq!(
            fitted.state().to_vec(),
            expected.state().to_vec(),
            "{}",
            case.name
        );
    }
}

/// Rows of very different lengths, sorted by length: blocks are cut so that the longest fit.
#[test]
fn blocks_of_long_rows_fit_the_memory() {
    let directory = TempDir::new().expect("directory");
    let path = |name: &str| directory.path().join(name);
    let (mut indptr, mut indices, mut values) = (vec![0_i32], vec![], vec![]);
    for row in 0..200_i32 {
        let length = if row < 180 { 1 } else { 100 };
        indices.extend(0..length);
        values.extend((0..length).map(|feature| f64::from((row + feature) % 5)));
        indptr.push(i32::try_from(indices.len()).expect("small"));
    }
    let bytes =
        |values: &[i32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_ne_bytes()).collect() };
    fs::write(path("indptr"), bytes(&indptr)).expect("written");
    fs::write(path("indices"), bytes(&indices)).expect("written");
    let stored: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    fs::write(path("values"), stored).expect("written");
    let open = |name, element, len: usize| StoredArray::open(&path(name), 0, element, len as u64);
    let arrays = [
        open("indptr", Element::I32, indptr.len()).expect("valid"),
        open("indices", Element::I32, indices.len()).expect("valid"),
        open("values", Element::F64, values.len()).expect("valid"),
    ];
    let rows = StoredRows::csr(arrays, 200, 100).expect("valid");
    let codes: ndarray::Array1<u32> = (0..200).map(|row| row % 2).collect();
    let learner = Pegasos::new(PegasosOptions::default(), 100, 2).expect("valid");
    let csr = Csr::new(&indptr, &indices, &values, 100).expect("valid");
    let data = Dataset::new(Rows::Csr32(csr))
        .expect("finite")
        .with_classes(codes.view(), 2)
        .expect("valid");
    let folds = Folds::leave_one_out(200).expect("valid");
    let tree = Tree::in_given_order();
    let expected = tree
        .cross_validate(&learner, &data, &folds)
        .expect("in memory");
    let run = |memory_bytes| {
        let streaming = streaming(directory.path(), memory_bytes);
        let data = Dataset::stored(&rows, &streaming).with_classes(codes.view(), 2);
        tree.cross_validate(&learner, &data.expect("valid"), &folds)
    };
    on_threads(1, || {
        let found = run(3 * 13 * 1_200).expect("room for 12 of the longest rows");
        assert_eq!(found.outputs, expected.outputs);
        // The mean row has 11 values, so rows of that length would fit in blocks of 12.
        assert!(message(run(3 * 6 * 1_200)).starts_with("memory must be room for"));
    });
}

fn message<T>(result: Result<T, Error>) -> String {
    result
        .err()
        .map_or(String::new(), |error| error.to_string())
}

#[test]
fn files_that_are_damaged_or_change_are_errors() {
    let files = Files::new();
    let [dense, _, csr, _] = files.layouts();
    let case = every_learner(N_FEATURES)
        .into_iter()
        .find(|case| case.name == "pegasos");
    let learner = case.expect("in the registry").learner;
    let folds = Folds::contiguous(N_ROWS, 5).expect("valid");
    let tree = Tree::in_given_order();
    let streaming = streaming(files.directory.path(), 3_000);
    let run = |rows: &StoredRows, tree: Tree, streaming: &Streaming| {
        let data = with_targets(rows, streaming, &files.set, Targets::Classes);
        message(tree.cross_validate(&*learner, &data, &folds))
    };
    assert_eq!(run(&dense, tree, &streaming), "");
    let tiny = Streaming {
        memory_bytes: 50,
        ..streaming.clone()
    };
    assert!(run(&dense, tree, &tiny).starts_with("memory must be room for"));
    let random = Tree::default();
    assert!(run(&dense, random, &streaming).contains("once or fixed for rows on disk"));
    let nowhere = Streaming {
        temp_dir: files.path("missing"),
        ..streaming.clone()
    };
    // Folds that fit blocks are read from where they are, in any order.
    let shuffled = Tree {
        order: Order::Once { seed: 1 },
        ..tree
    };
    assert_eq!(run(&dense, shuffled, &nowhere), "");
    let stored = with_targets(&dense, &nowhere, &files.set, Targets::Classes);
    let scattered = Folds::shuffled(N_ROWS, 5, 0).expect("valid");
    let found = tree.cross_validate(&*learner, &stored, &scattered);
    assert!(message(found).starts_with("temporary file in "));

    let open = |name, len| StoredArray::open(&files.path(name), 16, Element::F64, len);
    assert!(message(open("missing", 1)).contains("missing: "));
    let long = (N_ROWS * N_FEATURES) as u64 + 1;
    assert!(message(open("dense", long)).contains("bytes, not"));

    // An index that is out of range, then files that change while they are open.
    let mut indices = fs::read(files.path("indices")).expect("read");
    indices[16] = 200;
    fs::write(files.path("indices"), &indices).expect("written");
    let error = run(&csr, tree, &streaming);
    assert!(error.contains("changed while it was read"), "{error}");
    let [_, _, damaged, _] = files.layouts();
    assert!(run(&damaged, tree, &streaming).contains("has index 200 of 6 features"));
    fs::write(files.path("dense"), [0; 40]).expect("written");
    let error = run(&dense, tree, &streaming);
    assert!(
        error.contains("dense: it changed while it was read"),
        "{error}"
    );
}

/// Values that are not finite are named by their row in the file, whatever the folds.
#[test]
fn values_that_are_not_finite_are_named() {
    let files = Files::new();
    let mut values = fs::read(files.path("dense")).expect("read");
    let at = 16 + 8 * (70 * N_FEATURES + 2);
    values[at..at + 8].copy_from_slice(&f64::NAN.to_ne_bytes());
    fs::write(files.path("dense"), values).expect("written");
    let [dense, ..] = files.layouts();
    let case = every_learner(N_FEATURES)
        .into_iter()
        .find(|case| case.name == "pegasos");
    let learner = case.expect("in the registry").learner;
    let streaming = streaming(files.directory.path(), 3_000);
    let data = with_targets(&dense, &streaming, &files.set, Targets::Classes);
    let folds = Folds::shuffled(N_ROWS, 4, 0).expect("valid");
    let found = Tree::in_given_order().cross_validate(&*learner, &data, &folds);
    assert_eq!(
        message(found),
        "X[70, 2] is NaN: every value must be finite"
    );
    // Engines that do not read block by block say so.
    let values = files.set.values().insert_axis(ndarray::Axis(1));
    let ridge = Dataset::stored(&dense, &streaming).with_values(values);
    let ridge = Virtual.cross_validate(&LinearModel::default(), &ridge.expect("valid"), &folds);
    assert!(message(ridge).contains("a dense or CSR matrix in memory, got rows on disk"));
}
