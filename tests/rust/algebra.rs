//! Textbook linear algebra.

/// Solves Ax = b by Gaussian elimination with pivoting; returns x and ln |det A|.
pub(crate) fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> (Vec<f64>, f64) {
    let n = b.len();
    let mut log_determinant = 0.0;
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs()))
            .expect("rows");
        a.swap(column, pivot);
        b.swap(column, pivot);
        log_determinant += a[column][column].abs().ln();
        let above = a[column].clone();
        for row in column + 1..n {
            let factor = a[row][column] / above[column];
            for (a, above) in a[row].iter_mut().zip(&above) {
                *a -= factor * above;
            }
            b[row] -= factor * b[column];
        }
    }
    for row in (0..n).rev() {
        let sum: f64 = (row + 1..n).map(|k| a[row][k] * b[k]).sum();
        b[row] = (b[row] - sum) / a[row][row];
    }
    (b, log_determinant)
}

/// Asserts that numbers agree to `tolerance` × max(1, |expected|); equal infinities agree.
pub(crate) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    for (found, expected) in found.iter().zip(expected) {
        let allowed = tolerance * expected.abs().max(1.0);
        let agree = found == expected || (found - expected).abs() <= allowed;
        assert!(agree, "{context}: {found} against {expected}");
    }
}
