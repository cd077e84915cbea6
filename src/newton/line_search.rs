//! The least value of a convex function along a line, from its derivatives.

/// Evaluations of the derivatives.
const MAX_EVALUATIONS: usize = 60;

/// The search ends at this part of the derivative at its start.
const SLOPE_RATIO: f64 = 0.1;

/// The length at which the derivative is a small part of `slope`, that at length 0: by Newton's method
/// between bounds, as the derivative of a convex function increases. `None` if there is no such length.
pub(super) fn line_search(
    slope: f64,
    mut derivatives: impl FnMut(f64) -> (f64, f64),
) -> Option<f64> {
    if !(slope < 0.0 && slope.is_finite()) {
        return None;
    }
    let (mut length, mut low, mut high) = (1.0, 0.0, f64::INFINITY);
    let mut change = f64::INFINITY;
    for _ in 0..MAX_EVALUATIONS {
        let (first, second) = derivatives(length);
        if first.abs() <= SLOPE_RATIO * slope.abs() {
            return Some(length);
        }
        if first < 0.0 {
            low = length;
        } else {
            high = length;
        }
        let newton = length - first / second;
        // Newton's steps may hardly end where the derivative grows exponentially: they must halve.
        let is_slow = high.is_finite() && (newton - length).abs() > 0.5 * change;
        let next = if newton > low && newton < high && newton <= 16.0 * length && !is_slow {
            newton
        } else if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            4.0 * length
        };
        change = (next - length).abs();
        length = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinks_and_overflow_are_passed() {
        // max(0, 1 − t)² + max(0, 100t − 30)², whose least value is near 0.3.
        let kinked = |t: f64| {
            let (a, b) = ((1.0 - t).max(0.0), (100.0 * t - 30.0).max(0.0));
            let second = 2.0 * f64::from(a > 0.0) + 2e4 * f64::from(b > 0.0);
            (-2.0 * a + 200.0 * b, second)
        };
        let length = line_search(-2.0, kinked).expect("convex");
        assert!(kinked(length).0.abs() <= 0.2);
        // e^{1000t} − 2000t.
        let steep = |t: f64| (1e3 * (1e3 * t).exp() - 2e3, 1e6 * (1e3 * t).exp());
        let length = line_search(-1e3, steep).expect("convex");
        assert!((length - 2f64.ln() / 1e3).abs() < 1e-4);
        assert_eq!(line_search(1.0, kinked), None);
        assert_eq!(line_search(-1.0, |_| (-1.0, 0.0)), None);
    }
}
