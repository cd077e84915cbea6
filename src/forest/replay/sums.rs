//! Sums of targets, added up in the order in which scikit-learn adds them.

/// A row as sums count it.
#[derive(Clone, Copy)]
pub(super) struct Term {
    /// Weight times target.
    pub(super) product: f64,
    pub(super) weight: f64,
    pub(super) target: f64,
}

/// Sums over the rows of a node, in their order.
#[derive(Clone, Copy, Default)]
pub(super) struct NodeSums {
    /// Σ wy.
    pub(super) products: f64,
    /// Σ wy².
    pub(super) squares: f64,
    /// Σ w.
    pub(super) weight: f64,
}

impl NodeSums {
    pub(super) fn of(rows: &[u32], terms: &[Term]) -> Self {
        let mut sums = Self::default();
        for &row in rows {
            let Term {
                product,
                weight,
                target,
            } = terms[row as usize];
            sums.products += product;
            sums.squares += product * target;
            sums.weight += weight;
        }
        sums
    }

    /// The variance of the targets.
    pub(super) fn impurity(&self) -> f64 {
        let mean = self.products / self.weight;
        self.squares / self.weight - mean * mean
    }

    /// Their mean.
    pub(super) fn mean(&self) -> f64 {
        self.products / self.weight
    }
}

/// The sums left of a boundary that moves to the right.
pub(super) struct LeftSums {
    node: NodeSums,
    place: usize,
    products: f64,
    pub(super) weight: f64,
}

impl LeftSums {
    /// The boundary before the first row.
    pub(super) fn new(node: NodeSums) -> Self {
        Self {
            node,
            place: 0,
            products: 0.0,
            weight: 0.0,
        }
    }

    /// Moves the boundary before the row at `place`: by adding rows, or from the other end, which is
    /// shorter, by subtracting them. `term` knows a row of the node.
    #[inline(always)]
    pub(super) fn advance(&mut self, place: usize, n: usize, term: impl Fn(usize) -> Term) {
        if place - self.place <= n - place {
            for row in self.place..place {
                let Term {
                    product, weight, ..
                } = term(row);
                self.products += product;
                self.weight += weight;
            }
        } else {
            (self.products, self.weight) = (self.node.products, self.node.weight);
            for row in (place..n).rev() {
                let Term {
                    product, weight, ..
                } = term(row);
                self.products -= product;
                self.weight -= weight;
            }
        }
        self.place = place;
    }

    pub(super) fn weight_right(&self) -> f64 {
        self.node.weight - self.weight
    }

    /// `proxy_impurity_improvement` of scikit-learn, if it is above `best`.
    #[inline(always)]
    pub(super) fn score_above(&self, best: f64) -> Option<f64> {
        let right = self.node.products - self.products;
        let squares = [self.products * self.products, right * right];
        let weights = [self.weight, self.weight_right()];
        // Rounding is smaller than the margin; most boundaries need no division.
        let least = best * (1.0 - super::SCORE_MARGIN);
        if squares[0] * weights[1] + squares[1] * weights[0] < least * (weights[0] * weights[1]) {
            return None;
        }
        let score = squares[0] / weights[0] + squares[1] / weights[1];
        (score > best).then_some(score)
    }

    /// The impurities on both sides, given Σ wy² on the left.
    pub(super) fn impurities(&self, squares_left: f64) -> [f64; 2] {
        let impurity = |squares: f64, products: f64, weight: f64| {
            let mean = products / weight;
            squares / weight - mean * mean
        };
        let (squares, products) = (self.node.squares, self.node.products);
        [
            impurity(squares_left, self.products, self.weight),
            impurity(
                squares - squares_left,
                products - self.products,
                self.weight_right(),
            ),
        ]
    }
}
