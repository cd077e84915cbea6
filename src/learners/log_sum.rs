//! The logarithm of a long product.

/// Σ ln vᵢ for positive vᵢ, with a logarithm only when the product leaves the safe range: about a
/// tenth of the time that a logarithm for each would take.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogSum {
    sum: f64,
    product: f64,
}

impl LogSum {
    pub(super) const EMPTY: Self = Self {
        sum: 0.0,
        product: 1.0,
    };

    #[inline(always)]
    pub(super) fn add(&mut self, value: f64) {
        let product = self.product * value;
        if product > 1e-290 && product < 1e290 {
            self.product = product;
        } else {
            self.sum += self.product.ln();
            self.product = value;
        }
    }

    pub(super) fn value(self) -> f64 {
        self.sum + self.product.ln()
    }
}

impl FromIterator<f64> for LogSum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sum = Self::EMPTY;
        values.into_iter().for_each(|value| sum.add(value));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_sum_of_logarithms() {
        for values in [
            vec![],
            vec![3.0; 1000],
            vec![1e-300; 9],
            vec![1e300, 1e-300, 7.0, 1e300, 1e250],
            (1..500).map(f64::from).collect(),
        ] {
            let expected: f64 = values.iter().map(|v: &f64| v.ln()).sum();
            let found = values.into_iter().collect::<LogSum>().value();
            assert!((found - expected).abs() <= 1e-12 * expected.abs());
        }
        let zero: LogSum = [2.0, 0.0, 3.0].into_iter().collect();
        assert_eq!(zero.value(), f64::NEG_INFINITY);
    }
}
