//! Where iterations for eigenvalues start.

/// A vector that is not at right angles to an eigenvector, unless by a rare accident: the parts
/// after the point of the multiples of the golden ratio, about 0.
pub(crate) fn vector(n: usize) -> Vec<f64> {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    (1..=n).map(|i| (i as f64 * GOLDEN).fract() - 0.5).collect()
}
