//! The quadratic of a training set from its columns: residuals are updated, no Gram matrix is formed.
//!
//! Columns are weighted by √w, scaled, and centred if there is an intercept. Dense ones are copied so.
//! Sparse ones are centred implicitly: with stored values v and mean m, the column is v − m√w. The
//! residual is kept as r + o√w with a number o, and Σ√w(r + o√w) = 0 throughout, so that
//! gⱼ = ⟨vⱼ, r⟩ + o·W·mⱼ.
//!
//! **Screening.** If gⱼ was computed at a residual r₀, then |⟨xⱼ, r⟩| ≤ |gⱼ| + ‖xⱼ‖·‖r − r₀‖ at any
//! other. Features for which that is at most λ₁ satisfy the optimality conditions and are not read.

use super::solver::Quadratic;
use crate::linalg::packed;
use crate::runtime::simd::{self, Simd, WithSimd};

/// The training rows, column by column.
pub(super) struct Columns {
    pub(super) values: ColumnValues,
    /// √w of every row.
    pub(super) roots: Vec<f64>,
    /// Σ w.
    pub(super) weight: f64,
    /// Σ of the squares of every column, zero if it is constant.
    pub(super) squares: Vec<f64>,
}

/// Values of the columns.
pub(super) enum ColumnValues {
    /// One column after the other.
    Dense(Vec<f64>),
    /// Compressed columns, and the means that are not subtracted from them.
    Sparse {
        starts: Vec<usize>,
        rows: Vec<u32>,
        values: Vec<f64>,
        means: Vec<f64>,
    },
}

impl Columns {
    fn n_rows(&self) -> usize {
        self.roots.len()
    }

    /// ⟨xⱼ, r + o√w⟩, for a residual whose weighted sum is zero if columns are centred.
    #[inline(always)]
    fn dot<S: Simd>(&self, simd: S, j: usize, r: &[f64], offset: f64) -> f64 {
        match &self.values {
            ColumnValues::Dense(values) => simd::dot(simd, &values[j * r.len()..][..r.len()], r),
            ColumnValues::Sparse {
                starts,
                rows,
                values,
                means,
            } => {
                let range = starts[j]..starts[j + 1];
                let stored = rows[range.clone()].iter().zip(&values[range]);
                let sum: f64 = stored.map(|(&i, v)| v * r[i as usize]).sum();
                sum + offset * self.weight * means[j]
            }
        }
    }

    /// r + o√w ← r + o√w − δxⱼ.
    #[inline(always)]
    fn subtract<S: Simd>(&self, simd: S, j: usize, delta: f64, r: &mut [f64], offset: &mut f64) {
        match &self.values {
            ColumnValues::Dense(values) => {
                simd::axpy(simd, -delta, &values[j * r.len()..][..r.len()], r);
            }
            ColumnValues::Sparse {
                starts,
                rows,
                values,
                means,
            } => {
                let range = starts[j]..starts[j + 1];
                for (&i, v) in rows[range.clone()].iter().zip(&values[range]) {
                    r[i as usize] -= delta * v;
                }
                *offset += delta * means[j];
            }
        }
    }

    /// ⟨xᵢ, xⱼ⟩ for each of `others`, appended to `out`. `scratch` is zero before and after.
    #[inline(always)]
    fn products<S: Simd>(
        &self,
        simd: S,
        j: usize,
        others: &[usize],
        scratch: &mut [f64],
        out: &mut Vec<f64>,
    ) {
        match &self.values {
            ColumnValues::Dense(values) => {
                let n = self.n_rows();
                let column = |j: usize| &values[j * n..][..n];
                // Not a closure: what iterators call is not compiled for the vector instructions.
                for &i in others {
                    out.push(simd::dot(simd, column(i), column(j)));
                }
            }
            ColumnValues::Sparse {
                starts,
                rows,
                values,
                means,
            } => {
                let stored = |j: usize| {
                    let range = starts[j]..starts[j + 1];
                    rows[range.clone()].iter().zip(&values[range])
                };
                for (&i, &v) in stored(j) {
                    scratch[i as usize] = v;
                }
                out.extend(others.iter().map(|&other| {
                    let sum: f64 = stored(other).map(|(&i, v)| v * scratch[i as usize]).sum();
                    sum - self.weight * means[j] * means[other]
                }));
                for (&i, _) in stored(j) {
                    scratch[i as usize] = 0.0;
                }
            }
        }
    }
}

/// Products of the features that have been in a support, kept for the path of a fold.
#[derive(Debug, Default)]
struct SupportGram {
    features: Vec<usize>,
    /// Position of every feature among `features`, plus one; zero if it is not there.
    positions: Vec<u32>,
    /// Lower triangle, row by row.
    values: Vec<f64>,
}

/// The residual at which g of every feature was last computed.
#[derive(Debug, Default)]
struct ScreeningPoint {
    r: Vec<f64>,
    g: Vec<f64>,
}

/// Fraction of the features that may be read before the screening_point is moved.
const MAX_READ_FRACTION: f64 = 0.5;

/// ½‖y − Xβ‖² from columns.
pub(super) struct ColumnQuadratic<'a> {
    columns: &'a Columns,
    /// √w(y − ȳ).
    target: Vec<f64>,
    target_square: f64,
    r: Vec<f64>,
    offset: f64,
    screening_point: ScreeningPoint,
    support: SupportGram,
    scratch: Vec<f64>,
}

impl<'a> ColumnQuadratic<'a> {
    pub(super) fn new(columns: &'a Columns) -> Self {
        Self {
            target: vec![],
            target_square: 0.0,
            r: vec![0.0; columns.n_rows()],
            offset: 0.0,
            screening_point: ScreeningPoint::default(),
            support: SupportGram {
                positions: vec![0; columns.squares.len()],
                ..SupportGram::default()
            },
            scratch: vec![0.0; columns.n_rows()],
            columns,
        }
    }

    /// Takes another output: √w(y − ȳ).
    pub(super) fn set_output(&mut self, target: Vec<f64>) {
        self.target_square = target.iter().map(|y| y * y).sum();
        self.target = target;
        self.screening_point = ScreeningPoint::default();
    }

    /// Takes the output whose residual at `beta` this is.
    pub(super) fn set_residual(&mut self, beta: &[f64], residual: Vec<f64>) {
        let mut target = residual;
        simd::dispatch(AddFit(self.columns, beta, &mut target));
        self.set_output(target);
    }

    /// Writes g, except of features that are zero and at most `bound` by the screening_point.
    #[inline(always)]
    fn correlate<S: Simd>(&mut self, simd: S, beta: &[f64], bound: f64, g: &mut [f64]) {
        let squares = &self.columns.squares;
        let ScreeningPoint { r: old, g: known } = &self.screening_point;
        let distance = old.iter().zip(&self.r).map(|(a, b)| (a - b) * (a - b));
        let distance = distance.sum::<f64>().sqrt();
        let is_read = |j: usize| {
            // A constant column has no variation but rounding.
            squares[j] > 0.0
                && (beta[j] != 0.0
                    || known
                        .get(j)
                        .is_none_or(|g| g.abs() + squares[j].sqrt() * distance > bound))
        };
        let mut n_read = 0_usize;
        for (j, g) in g.iter_mut().enumerate() {
            if is_read(j) {
                *g = self.columns.dot(simd, j, &self.r, self.offset);
                n_read += 1;
            } else {
                *g = known.get(j).copied().unwrap_or(0.0);
            }
        }
        if n_read as f64 <= MAX_READ_FRACTION * squares.len() as f64 {
            return;
        }
        for (j, g) in g.iter_mut().enumerate() {
            if squares[j] > 0.0 && !is_read(j) {
                *g = self.columns.dot(simd, j, &self.r, self.offset);
            }
        }
        self.screening_point.r.clone_from(&self.r);
        self.screening_point.g.clear();
        self.screening_point.g.extend_from_slice(g);
    }
}

/// r ← r + Xβ.
struct AddFit<'a>(&'a Columns, &'a [f64], &'a mut [f64]);

impl WithSimd for AddFit<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(columns, beta, r) = self;
        let mut offset = 0.0;
        for (j, &b) in beta.iter().enumerate().filter(|e| *e.1 != 0.0) {
            columns.subtract(simd, j, -b, r, &mut offset);
        }
        if offset != 0.0 {
            simd::axpy(simd, offset, &columns.roots, r);
        }
    }
}

impl Quadratic for ColumnQuadratic<'_> {
    fn target_square(&self) -> f64 {
        self.target_square
    }

    #[inline(always)]
    fn curvature(&self, j: usize) -> f64 {
        self.columns.squares[j]
    }

    #[inline(always)]
    fn correlation<S: Simd>(&self, simd: S, j: usize) -> f64 {
        self.columns.dot(simd, j, &self.r, self.offset)
    }

    #[inline(always)]
    fn step<S: Simd>(&mut self, simd: S, j: usize, delta: f64) {
        self.columns
            .subtract(simd, j, delta, &mut self.r, &mut self.offset);
    }

    #[inline(always)]
    fn set<S: Simd>(&mut self, simd: S, beta: &[f64], bound: f64, g: &mut [f64]) -> f64 {
        self.r.copy_from_slice(&self.target);
        self.offset = 0.0;
        for (j, &b) in beta.iter().enumerate().filter(|e| *e.1 != 0.0) {
            self.step(simd, j, b);
        }
        if self.offset != 0.0 {
            simd::axpy(simd, self.offset, &self.columns.roots, &mut self.r);
            self.offset = 0.0;
        }
        self.correlate(simd, beta, bound, g);
        simd::dot(simd, &self.r, &self.r)
    }

    #[inline(always)]
    fn block<S: Simd>(&mut self, simd: S, support: &[usize], out: &mut Vec<f64>) {
        let Self {
            columns,
            support: kept,
            scratch,
            ..
        } = self;
        for &j in support.iter().filter(|&&j| kept.positions[j] == 0) {
            let (features, values) = (&mut kept.features, &mut kept.values);
            columns.products(simd, j, features, scratch, values);
            values.push(columns.squares[j]);
            features.push(j);
        }
        for (position, &j) in kept.features.iter().enumerate() {
            #[allow(clippy::cast_possible_truncation)] // row numbers are 32-bit, supports smaller
            let place = position as u32 + 1;
            kept.positions[j] = place;
        }
        for (i, &j) in support.iter().enumerate() {
            out.extend(support[..=i].iter().map(|&other| {
                let (a, b) = (kept.positions[j] - 1, kept.positions[other] - 1);
                kept.values[packed::len(a.max(b) as usize) + a.min(b) as usize]
            }));
        }
    }

    fn step_cost(&self) -> usize {
        match &self.columns.values {
            ColumnValues::Dense(_) => 2 * self.columns.n_rows(),
            ColumnValues::Sparse { values, .. } => {
                4 * values.len() / self.columns.squares.len().max(1) + 1
            }
        }
    }
}
