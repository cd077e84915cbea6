//! Start vectors of power and Lanczos iterations.

/// A deterministic vector with entries in (−½, ½) that has, but for rare coincidence, a component
/// along every eigenvector: the fractional parts of multiples of the golden ratio.
pub(crate) fn start_vector(n: usize) -> Vec<f64> {
    const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;
    let fraction = |i: usize| (i as f64 * GOLDEN_RATIO).fract();
    (1..=n).map(|i| fraction(i) - 0.5).collect()
}
