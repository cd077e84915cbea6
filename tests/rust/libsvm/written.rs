//! The writer: what it writes reads back bit for bit.

use std::fs;

use ndarray::ArrayView2;
use onefold::data::{Csr, Dense};
use onefold::libsvm::{Document, IndexBase, Input, Labels, ReadOptions, Values, load};
use onefold::{Error, Monitor};
use proptest::prelude::*;

use super::{POOLS, cases, ints, load_text};

fn document<'a, R>(rows: &'a R, labels: &'a [f64]) -> Document<'a, R> {
    Document {
        rows,
        labels: Labels::Single(labels),
        qids: None,
        is_one_based: false,
        writes_zeros: true,
        header: b"",
    }
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Any float but NaN, whose bits are not written; often one of few digits.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("not NaN", |value| !value.is_nan()),
        (-1000..1000_i32).prop_map(|number| f64::from(number) / 8.0),
        Just(-0.0),
    ]
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn what_is_written_reads_back_bit_for_bit(
        rows in prop::collection::vec(
            (value(), any::<i64>(), prop::collection::btree_map(0..200_i64, value(), 0..6)), 1..40
        ),
        is_one_based: bool,
        has_qids: bool,
        is_multilabel: bool,
    ) {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (_, _, entries) in &rows {
            indices.extend(entries.keys());
            values.extend(entries.values());
            indptr.push(i64::try_from(values.len()).expect("short"));
        }
        let csr = Csr::new(&indptr, &indices, &values, 200).expect("valid");
        let mut labels: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let qids: Vec<i64> = rows.iter().map(|row| row.1).collect();
        // None, one or two labels; a row without features must have one.
        let mut ends = Vec::new();
        if is_multilabel {
            let all = std::mem::take(&mut labels);
            for (i, row) in rows.iter().enumerate() {
                let n_labels = if has_qids || !row.2.is_empty() { i % 3 } else { 1 };
                let mut of_row: Vec<f64> = all.iter().copied().cycle().skip(i).take(n_labels).collect();
                of_row.sort_by(f64::total_cmp);
                labels.extend(of_row);
                ends.push(labels.len());
            }
        }
        let written = Document {
            labels: if is_multilabel { Labels::Multi(&labels, &ends) } else { Labels::Single(&labels) },
            qids: has_qids.then_some(&qids[..]),
            is_one_based,
            header: b"# header 1:2\n#\n",
            ..document(&csr, &labels)
        };
        let options = ReadOptions {
            n_features: Some(200),
            base: if is_one_based { IndexBase::One } else { IndexBase::Zero },
            multilabel: is_multilabel,
            query_id: has_qids,
            allow_nonfinite: true,
            ..ReadOptions::default()
        };
        for pool in POOLS.iter() {
            let mut text = Vec::new();
            pool.install(|| written.write(&mut text, "text", &Monitor::new())).expect("written");
            let loaded = load_text(&text, &options).expect("valid");
            let matrix = &loaded.matrices[0];
            prop_assert_eq!(ints(&matrix.indptr), &indptr[..]);
            prop_assert_eq!(ints(&matrix.indices), &indices[..]);
            let Values::Double(found) = &matrix.values else { panic!("f64") };
            prop_assert_eq!(bits(found), bits(&values));
            prop_assert_eq!(bits(&matrix.labels), bits(&labels));
            prop_assert_eq!(&matrix.qids[..], if has_qids { &qids[..] } else { &[] });
            if is_multilabel {
                let ends: Vec<i64> = ends.iter().map(|&end| i64::try_from(end).expect("short")).collect();
                prop_assert_eq!(&matrix.label_ends, &ends);
            }
        }
    }
}

#[test]
fn numbers_are_as_short_as_they_can_be() {
    let values = [1.0, 0.1, -2.5, 1e300, 5e-324, 0.0, 123_456_789.0];
    let rows = ArrayView2::from_shape((1, 7), &values).expect("shape");
    let rows = Dense::new(rows).expect("valid");
    let mut text = Vec::new();
    let sparse = Document {
        writes_zeros: false,
        is_one_based: true,
        ..document(&rows, &[-1.0])
    };
    sparse
        .write(&mut text, "text", &Monitor::new())
        .expect("written");
    document(&rows, &[3.5])
        .write(&mut text, "text", &Monitor::new())
        .expect("written");
    let expected = "-1 1:1 2:0.1 3:-2.5 4:1e+300 5:5e-324 7:123456789\n\
                    3.5 0:1 1:0.1 2:-2.5 3:1e+300 4:5e-324 5:0 6:123456789\n";
    assert_eq!(String::from_utf8(text).expect("ASCII"), expected);
}

#[test]
fn parts_that_do_not_agree_are_refused() {
    let rows = ArrayView2::from_shape((2, 1), &[1.0, 0.0]).expect("shape");
    let rows = Dense::new(rows).expect("valid");
    let error = |document: Document<'_, Dense<'_>>| {
        let written = document.write(&mut Vec::new(), "text", &Monitor::new());
        written.expect_err("refused").to_string()
    };
    assert_eq!(
        error(document(&rows, &[1.0])),
        "y: expected length 2, got 1"
    );
    let qids = Document {
        qids: Some(&[1]),
        ..document(&rows, &[1.0, 2.0])
    };
    assert_eq!(error(qids), "query_id: expected length 2, got 1");
    for ends in [&[1][..], &[1, 3], &[2, 1]] {
        let labels = Labels::Multi(&[1.0, 2.0], ends);
        assert!(
            error(Document {
                labels,
                ..document(&rows, &[])
            })
            .contains("expected length")
        );
    }
    // A blank line would not be read as a row.
    let empty = Document {
        labels: Labels::Multi(&[], &[0, 0]),
        writes_zeros: false,
        ..document(&rows, &[])
    };
    assert!(error(empty).ends_with("got none for row 1"));
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let place = std::env::temp_dir().join(format!("onefold-written-{}", std::process::id()));
    fs::create_dir_all(&place).expect("a directory");
    let values: Vec<f64> = (1..2001_i32).map(|i| f64::from(i) / 7.0).collect();
    let rows = ArrayView2::from_shape((1000, 2), &values).expect("shape");
    let rows = Dense::new(rows).expect("valid");
    let labels = vec![1.0; 1000];
    let good = document(&rows, &labels);
    let (plain, compressed) = (["plain"], ["a.gz", "a.bz2", "a.xz", "a.zst"]);
    let has_codecs = cfg!(feature = "compression");
    let names = [&plain[..], if has_codecs { &compressed } else { &[] }].concat();
    for name in &names {
        let path = place.join(name);
        good.write_to_path(&path, &Monitor::new()).expect("written");
        let before = fs::read(&path).expect("there");
        let read = load(
            vec![Input::Path(path.clone())],
            &ReadOptions::default(),
            &Monitor::new(),
        );
        assert_eq!(
            read.expect("valid").matrices[0].values,
            Values::Double(values.clone().into())
        );
        let cancelled = Monitor::new();
        cancelled.cancel();
        let stopped = good.write_to_path(&path, &cancelled);
        assert!(matches!(stopped, Err(Error::Interrupted)));
        assert_eq!(fs::read(&path).expect("there"), before, "{name}");
    }
    if !has_codecs {
        for name in compressed {
            let written = good.write_to_path(&place.join(name), &Monitor::new());
            let error = written.expect_err("no encoder").to_string();
            assert!(error.contains("the feature \"compression\""), "{error}");
        }
    }
    assert_eq!(
        fs::read_dir(&place).expect("there").count(),
        names.len(),
        "nothing else is left"
    );
    let nowhere = place.join("missing").join("file");
    assert!(matches!(
        good.write_to_path(&nowhere, &Monitor::new()),
        Err(Error::Io { .. })
    ));
    fs::remove_dir_all(&place).expect("removed");
}
