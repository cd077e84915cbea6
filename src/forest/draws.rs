//! The random numbers of scikit-learn's trees, replayed.
//!
//! Which of two equally good splits a tree takes depends on the order in which features are drawn, so
//! a tree equals scikit-learn's only if its draws do.
//!
//! **References.** Marsaglia, "Xorshift RNGs" (2003); Matsumoto and Nishimura, "Mersenne twister" (1998).

/// The largest number and the largest seed of xorshift: `RAND_R_MAX` of scikit-learn.
const MAX_SPLITTER_SEED: u32 = 0x7fff_ffff;

/// `numpy.random.RandomState(seed)`: the Mersenne twister MT19937.
pub(super) struct MersenneTwister {
    state: [u32; 624],
    position: usize,
}

impl MersenneTwister {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = [0; 624];
        state[0] = seed;
        let mut previous = seed;
        for (i, word) in (1_u32..).zip(&mut state[1..]) {
            previous = 1_812_433_253_u32
                .wrapping_mul(previous ^ (previous >> 30))
                .wrapping_add(i);
            *word = previous;
        }
        Self {
            state,
            position: 624,
        }
    }

    fn twist(&mut self) {
        for k in 0..624 {
            let y = (self.state[k] & 0x8000_0000) | (self.state[(k + 1) % 624] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[k] = self.state[(k + 397) % 624] ^ (y >> 1) ^ odd;
        }
        self.position = 0;
    }

    fn next_u32(&mut self) -> u32 {
        if self.position == 624 {
            self.twist();
        }
        let mut y = self.state[self.position];
        self.position += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// `random_sample()`: from 0 to below 1, in 53 bits.
    fn uniform(&mut self) -> f64 {
        let (high, low) = (self.next_u32() >> 5, self.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// `randint(0, bound)`, by masked rejection. `bound` must be positive.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        let largest = bound - 1;
        if largest == 0 {
            return 0;
        }
        let mask = u32::MAX >> largest.leading_zeros();
        loop {
            let number = self.next_u32() & mask;
            if number <= largest {
                return number;
            }
        }
    }
}

/// Numbers drawn in proportion to weights: `RandomState.choice(n, replace=True, p=weights / sum)`.
pub(super) struct WeightedDraws(Vec<f64>);

impl WeightedDraws {
    /// Draws of numbers with these weights, whose sum is exact and positive.
    pub(super) fn new(weights: impl Iterator<Item = u32> + Clone) -> Self {
        let total: f64 = weights.clone().map(f64::from).sum();
        let add = |sum: &mut f64, weight: u32| {
            *sum += f64::from(weight) / total;
            Some(*sum)
        };
        let mut shares: Vec<f64> = weights.scan(0.0, add).collect();
        let last = shares.last().copied().unwrap_or(1.0);
        for share in &mut shares {
            *share /= last;
        }
        Self(shares)
    }

    pub(super) fn next(&self, random: &mut MersenneTwister) -> usize {
        let drawn = random.uniform();
        self.0.partition_point(|&share| share <= drawn)
    }
}

/// Xorshift with 32 bits of state: `our_rand_r` of scikit-learn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Xorshift(u32);

impl Xorshift {
    fn next(&mut self) -> u32 {
        let state = &mut self.0;
        if *state == 0 {
            *state = 1;
        }
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        *state & MAX_SPLITTER_SEED
    }

    /// `rand_int` of scikit-learn: a number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    /// `rand_uniform` of scikit-learn: a number from `low` to `high`, both possible.
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        (high - low) * f64::from(self.next()) / f64::from(MAX_SPLITTER_SEED) + low
    }
}

/// The features of a tree in the order in which its nodes draw them, and those known to be constant.
///
/// At each node features are drawn without replacement (Fisher and Yates). `features` is a permutation
/// that lasts for the whole tree; its first entries at a node are the features that are constant in
/// some ancestor, in the order in which they were found, which `constants` keeps.
#[derive(Clone, PartialEq)]
pub(super) struct FeatureDraws {
    random: Xorshift,
    features: Vec<u32>,
    constants: Vec<u32>,
}

impl FeatureDraws {
    /// The draws of the tree whose `random_state` is `seed`.
    #[allow(clippy::cast_possible_truncation)] // features are numbered by u32
    pub(super) fn new(seed: u32, n_features: usize) -> Self {
        Self {
            random: Xorshift(MersenneTwister::new(seed).below(MAX_SPLITTER_SEED)),
            features: (0..n_features as u32).collect(),
            constants: vec![0; n_features],
        }
    }

    /// Draws the features of one node. `is_constant` searches a feature, unless that is known to be
    /// constant, and says whether it is; it may draw numbers of its own.
    ///
    /// At least one feature that is not constant is drawn, even beyond `max_features`, if there is one.
    /// Returns the number of features that the children know to be constant; the node itself knows
    /// `n_known`.
    pub(super) fn draw(
        &mut self,
        n_known: usize,
        max_features: usize,
        mut is_constant: impl FnMut(u32, &mut Xorshift) -> bool,
    ) -> usize {
        let mut end = self.features.len();
        let (mut n_visited, mut n_found, mut n_drawn) = (0, 0, 0);
        while end > n_known + n_found
            && (n_visited < max_features || n_visited <= n_found + n_drawn)
        {
            n_visited += 1;
            let choices = end - n_found - n_drawn;
            let drawn = n_drawn + self.random.below(choices);
            if drawn < n_known {
                self.features.swap(n_drawn, drawn);
                n_drawn += 1;
                continue;
            }
            let drawn = drawn + n_found;
            if is_constant(self.features[drawn], &mut self.random) {
                self.features.swap(drawn, n_known + n_found);
                n_found += 1;
            } else {
                end -= 1;
                self.features.swap(end, drawn);
            }
        }
        let n_total = n_known + n_found;
        self.features[..n_known].copy_from_slice(&self.constants[..n_known]);
        self.constants[n_known..n_total].copy_from_slice(&self.features[n_known..n_total]);
        n_total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_numpy() {
        // numpy.random.RandomState(0).randint(0, 10, 10) and RandomState(42).randint(2**31 - 1)
        let mut random = MersenneTwister::new(0);
        let numbers: Vec<u32> = (0..10).map(|_| random.below(10)).collect();
        assert_eq!(numbers, [5, 0, 3, 3, 7, 9, 3, 5, 2, 4]);
        assert_eq!(MersenneTwister::new(42).below(0x7fff_ffff), 1_608_637_542);
    }

    #[test]
    fn weighted_draws_are_those_of_numpy() {
        // numpy.random.RandomState(3).choice(5, 12, p=np.array([1, 0, 3, 2, 0]) / 6)
        let mut random = MersenneTwister::new(3);
        let draws = WeightedDraws::new([1, 0, 3, 2, 0].into_iter());
        let rows: Vec<usize> = (0..12).map(|_| draws.next(&mut random)).collect();
        assert_eq!(rows, [2, 3, 2, 2, 3, 3, 0, 2, 0, 2, 0, 2]);
    }

    #[test]
    fn every_feature_is_drawn_once_and_constants_come_first() {
        let mut draws = FeatureDraws::new(3, 6);
        let mut seen = vec![];
        let known = draws.draw(0, 6, |feature, _| {
            seen.push(feature);
            feature == 2 || feature == 5
        });
        assert_eq!(known, 2);
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
        let mut seen = vec![];
        assert_eq!(
            draws.draw(known, 6, |f, _| {
                seen.push(f);
                false
            }),
            2
        );
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 3, 4]);
    }
}
