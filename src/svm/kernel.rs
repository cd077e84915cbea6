//! Kernel functions, and blocks of kernel values between rows.
//!
//! # Method
//! Every kernel is a function of ⟨x, z⟩ or of ‖x − z‖² = ‖x‖² + ‖z‖² − 2⟨x, z⟩. Sixteen rows are
//! interleaved by feature into a *panel*, so that a stored value of another row is multiplied with
//! sixteen values by vector operations. Dense and CSR rows share the loop, without gathers. Each sum
//! runs over the features in increasing order, so K(x, z) and K(z, x) have the same bits, for dense
//! and for sparse rows.

use crate::data::{Layout, Row};
use crate::runtime::simd::{self, Simd, WithSimd, multiply_add};
use crate::{Error, Result};

/// Rows per panel of f64: four 256-bit vectors.
pub(super) const PANEL_ROWS: usize = 16;

/// Columns per tile. The products of a tile stay in the first-level cache.
const TILE_COLUMNS: usize = 64;

/// A kernel function K(x, z).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    /// ⟨x, z⟩.
    Linear,
    /// (γ⟨x, z⟩ + r)^d.
    Poly {
        /// γ.
        gamma: f64,
        /// r.
        coef0: f64,
        /// d.
        degree: i32,
    },
    /// exp(−γ‖x − z‖²).
    Rbf {
        /// γ.
        gamma: f64,
    },
    /// tanh(γ⟨x, z⟩ + r).
    Sigmoid {
        /// γ.
        gamma: f64,
        /// r.
        coef0: f64,
    },
    /// X holds kernel values: row `i` is K(xᵢ, x₀), K(xᵢ, x₁), …
    Precomputed,
    /// ‖x − z‖²: not a kernel, but the base of RBF kernels.
    SquaredDistance,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::Rbf { gamma: 1.0 }
    }
}

impl Kernel {
    /// Checks the parameters.
    pub fn check(self) -> Result<Self> {
        let (gamma, coef0, degree) = match self {
            Self::Poly {
                gamma,
                coef0,
                degree,
            } => (gamma, coef0, degree),
            Self::Rbf { gamma } => (gamma, 0.0, 0),
            Self::Sigmoid { gamma, coef0 } => (gamma, coef0, 0),
            Self::Linear | Self::Precomputed | Self::SquaredDistance => (0.0, 0.0, 0),
        };
        if !(gamma.is_finite() && gamma >= 0.0) {
            return Err(Error::parameter("gamma", "finite and not negative", gamma));
        }
        if !coef0.is_finite() {
            return Err(Error::parameter("coef0", "finite", coef0));
        }
        if degree < 0 {
            return Err(Error::parameter("degree", "at least 0", degree));
        }
        Ok(self)
    }

    /// The function that this kernel is computed from, independent of its parameters: squared
    /// distances or inner products.
    #[must_use]
    pub fn base(self) -> Self {
        match self {
            Self::Rbf { .. } | Self::SquaredDistance => Self::SquaredDistance,
            Self::Linear | Self::Poly { .. } | Self::Sigmoid { .. } => Self::Linear,
            Self::Precomputed => Self::Precomputed,
        }
    }

    /// Returns true if the kernel is positive semidefinite for all samples.
    pub(super) fn is_definite(self) -> bool {
        match self {
            Self::Linear | Self::Rbf { .. } => true,
            Self::Poly { coef0, .. } => coef0 >= 0.0,
            Self::Sigmoid { .. } | Self::Precomputed | Self::SquaredDistance => false,
        }
    }

    /// Returns true if values computed from rows may be far above 1.
    pub(super) fn is_unbounded(self) -> bool {
        matches!(self, Self::Linear | Self::Poly { .. })
    }

    /// Returns true if a relative error of a base value may become a larger one of a kernel value.
    pub(super) fn amplifies_rounding(self) -> bool {
        matches!(self, Self::Poly { .. } | Self::Sigmoid { .. })
    }

    /// Maps values of [`Kernel::base`] to values of this kernel, in place.
    #[inline(always)]
    pub(super) fn apply(self, precision: Precision, values: &mut [f64]) {
        match self {
            Self::Linear | Self::Precomputed | Self::SquaredDistance => {}
            Self::Poly {
                gamma,
                coef0,
                degree,
            } => {
                for value in values {
                    *value = (gamma * *value + coef0).powi(degree);
                }
            }
            Self::Rbf { gamma } => match precision {
                Precision::Single => {
                    for value in values {
                        let x = -gamma * *value;
                        *value = or_zero(x, simd::exp_for_f32::<pulp::Scalar>(x));
                    }
                }
                Precision::Double => {
                    for value in values {
                        let x = -gamma * *value;
                        *value = or_zero(x, simd::exp::<pulp::Scalar>(x));
                    }
                }
            },
            Self::Sigmoid { gamma, coef0 } => {
                for value in values {
                    *value = (gamma * *value + coef0).tanh();
                }
            }
        }
    }
}

/// The precision to which kernel values are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// For values that are stored as f32: a relative error of up to 5e-14 before they are rounded.
    Single,
    /// To 2 ulp of f64.
    Double,
}

/// A power eˣ, x ≤ 0, or 0 below −700. Powers are computed without fused operations, so that kernel
/// values have the same bits on every machine.
#[inline(always)]
fn or_zero(x: f64, power: f64) -> f64 {
    if x > -700.0 { power } else { 0.0 }
}

/// ‖x‖² of the listed rows, summed in the order of the products, so that ‖x − x‖² is exactly 0.
pub(super) fn squared_norms<R: Layout>(rows: &R, order: &[usize]) -> Vec<f64> {
    simd::dispatch(SquaredNorms { rows, order })
}

struct SquaredNorms<'a, R> {
    rows: &'a R,
    order: &'a [usize],
}

impl<R: Layout> WithSimd for SquaredNorms<'_, R> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Vec<f64> {
        let norm = |&row: &usize| {
            let entries = self.rows.row(row).entries();
            entries.fold(0.0, |sum, (_, v)| multiply_add::<S>(v, v, sum))
        };
        self.order.iter().map(norm).collect()
    }
}

/// The type in which products are summed.
pub(super) trait Accumulator: Copy + Default {
    /// Converts a value that the type represents exactly.
    fn of(value: f64) -> Self;

    /// ab + c.
    fn multiply_add<S: Simd>(a: Self, b: Self, c: Self) -> Self;

    /// ‖x − z‖² from ‖x‖², ‖z‖² and ⟨x, z⟩.
    fn distance(x: Self, z: Self, product: Self) -> Self;

    /// Inner products of two dense rows with all rows of a panel.
    #[inline(always)]
    fn products<S: Simd, const W: usize>(
        _: S,
        rows: [&[f64]; 2],
        panel: &[[Self; W]],
    ) -> [[Self; W]; 2] {
        rows.map(|row| products_by_lane::<S, Self, W>(row, panel))
    }

    /// [`Kernel::apply`].
    fn apply(kernel: Kernel, precision: Precision, values: &mut [Self]);
}

/// Inner products of a dense row with all rows of a panel.
#[inline(always)]
fn products_by_lane<S: Simd, T: Accumulator, const W: usize>(
    row: &[f64],
    panel: &[[T; W]],
) -> [T; W] {
    let mut sums = [T::default(); W];
    for (&value, lanes) in row.iter().zip(panel) {
        let value = T::of(value);
        for lane in 0..W {
            sums[lane] = T::multiply_add::<S>(value, lanes[lane], sums[lane]);
        }
    }
    sums
}

/// Vectors per row of a panel: enough independent sums to hide the latency of an addition.
const PANEL_VECTORS: usize = 4;

impl Accumulator for f64 {
    #[inline(always)]
    fn of(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn multiply_add<S: Simd>(a: Self, b: Self, c: Self) -> Self {
        multiply_add::<S>(a, b, c)
    }

    #[inline(always)]
    fn distance(x: Self, z: Self, product: Self) -> Self {
        let distance = x + z - 2.0 * product;
        if distance > 0.0 { distance } else { 0.0 }
    }

    /// With explicit vectors: compilers vectorise this loop well or poorly, as it happens.
    #[inline(always)]
    fn products<S: Simd, const W: usize>(
        simd: S,
        rows: [&[f64]; 2],
        panel: &[[f64; W]],
    ) -> [[f64; W]; 2] {
        let mut sums = [[simd.splat_f64s(0.0); PANEL_VECTORS]; 2];
        if W * size_of::<f64>() != size_of_val(&sums[0]) {
            return rows.map(|row| products_by_lane::<S, f64, W>(row, panel));
        }
        for ((&a, &b), lanes) in rows[0].iter().zip(rows[1]).zip(panel) {
            let (lanes, _) = S::as_simd_f64s(lanes);
            let (a, b) = (simd.splat_f64s(a), simd.splat_f64s(b));
            for (at, &lanes) in lanes.iter().enumerate().take(PANEL_VECTORS) {
                sums[0][at] = simd.mul_add_e_f64s(a, lanes, sums[0][at]);
                sums[1][at] = simd.mul_add_e_f64s(b, lanes, sums[1][at]);
            }
        }
        let mut products = [[0.0; W]; 2];
        for (products, sums) in products.iter_mut().zip(&sums) {
            S::as_mut_simd_f64s(products).0.copy_from_slice(sums);
        }
        products
    }

    #[inline(always)]
    fn apply(kernel: Kernel, precision: Precision, values: &mut [Self]) {
        kernel.apply(precision, values);
    }
}

/// Four times as many lanes as f64, for base values between integer rows with squared norms below
/// 2¹³.
impl Accumulator for i16 {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // small
    fn of(value: f64) -> Self {
        value as i16
    }

    #[inline(always)]
    fn multiply_add<S: Simd>(a: Self, b: Self, c: Self) -> Self {
        a * b + c
    }

    #[inline(always)]
    fn distance(x: Self, z: Self, product: Self) -> Self {
        x + z - 2 * product
    }

    fn apply(kernel: Kernel, _: Precision, _: &mut [Self]) {
        debug_assert_eq!(kernel, kernel.base());
    }
}

/// Up to `W` interleaved rows: `values[j]` holds feature `j` of all of them.
#[derive(Debug)]
pub(super) struct Panel<T, const W: usize> {
    pub(super) values: Vec<[T; W]>,
    norms: [T; W],
}

impl<T: Accumulator, const W: usize> Panel<T, W> {
    /// Interleaves the rows `members` with squared norms `norms`.
    pub(super) fn new<R: Layout>(rows: &R, members: &[usize], norms: &[f64]) -> Self {
        let zeros = [T::default(); W];
        let mut panel = Self {
            values: vec![zeros; rows.n_features()],
            norms: zeros,
        };
        for (lane, (&row, &norm)) in members.iter().zip(norms).enumerate() {
            panel.norms[lane] = T::of(norm);
            for (feature, value) in rows.row(row).entries() {
                panel.values[feature][lane] = T::of(value);
            }
        }
        panel
    }
}

/// The rows on the other side of a block of kernel values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a, R> {
    pub(super) rows: &'a R,
    pub(super) members: &'a [usize],
    pub(super) norms: &'a [f64],
}

/// Kernel values between a panel and all columns, tile by tile: calls `take(first, values)`, where
/// `values[c][lane]` belongs to column `first + c` and row `lane` of the panel.
pub(super) fn kernel_block<R: Layout, T: Accumulator, const W: usize>(
    (kernel, precision): (Kernel, Precision),
    panel: &Panel<T, W>,
    columns: Columns<'_, R>,
    mut take: impl FnMut(usize, &[[T; W]]),
) {
    let mut tile = [[T::default(); W]; TILE_COLUMNS];
    let members = columns.members.chunks(TILE_COLUMNS);
    let tiles = members.zip(columns.norms.chunks(TILE_COLUMNS));
    for (index, (members, norms)) in tiles.enumerate() {
        let tile = &mut tile[..members.len()];
        simd::dispatch(KernelTile {
            kernel,
            precision,
            panel,
            columns: Columns {
                members,
                norms,
                ..columns
            },
            out: tile,
        });
        take(index * TILE_COLUMNS, tile);
    }
}

/// Kernel values between one row, with its squared norm, and the rows of all panels: calls
/// `take(first, values)`, where `values[c]` belongs to row `first + c` of the panels. The bits are
/// those of [`kernel_block`] in single precision.
pub(super) fn kernel_row<R: Layout>(
    kernel: Kernel,
    panels: &[Panel<f64, PANEL_ROWS>],
    row: (&R, usize, f64),
    mut take: impl FnMut(usize, &[f64]),
) {
    let mut block = [[0.0; PANEL_ROWS]; TILE_COLUMNS];
    for (index, panels) in panels.chunks(TILE_COLUMNS).enumerate() {
        let block = &mut block[..panels.len()];
        simd::dispatch(KernelRow {
            kernel,
            panels,
            row,
            out: block,
        });
        take(index * TILE_COLUMNS * PANEL_ROWS, block.as_flattened());
    }
}

struct KernelRow<'a, R> {
    kernel: Kernel,
    panels: &'a [Panel<f64, PANEL_ROWS>],
    row: (&'a R, usize, f64),
    out: &'a mut [[f64; PANEL_ROWS]],
}

impl<R: Layout> WithSimd for KernelRow<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (rows, row, norm) = self.row;
        let is_distance = self.kernel.base() == Kernel::SquaredDistance;
        for (out, panel) in self.out.iter_mut().zip(self.panels) {
            let mut products = [0.0; PANEL_ROWS];
            let mut add = |value: f64, lanes: &[f64; PANEL_ROWS]| {
                for lane in 0..PANEL_ROWS {
                    products[lane] = multiply_add::<S>(value, lanes[lane], products[lane]);
                }
            };
            if let Some(values) = rows.values(row) {
                let entries = values.iter().zip(&panel.values);
                entries.for_each(|(&value, lanes)| add(value, lanes));
            } else {
                let entries = rows.row(row).entries();
                entries.for_each(|(feature, value)| add(value, &panel.values[feature]));
            }
            if is_distance {
                for (product, row_norm) in products.iter_mut().zip(panel.norms) {
                    *product = f64::distance(row_norm, norm, *product);
                }
            }
            *out = products;
        }
        let values = self.out.as_flattened_mut();
        self.kernel.apply(Precision::Single, values);
    }
}

struct KernelTile<'a, R, T, const W: usize> {
    kernel: Kernel,
    precision: Precision,
    panel: &'a Panel<T, W>,
    columns: Columns<'a, R>,
    out: &'a mut [[T; W]],
}

impl<R: Layout, T: Accumulator, const W: usize> WithSimd for KernelTile<'_, R, T, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            kernel,
            precision,
            panel,
            columns,
            out,
        } = self;
        // Two columns at a time: more independent sums, and each vector of the panel is read once
        // for both.
        for (sums, members) in out.chunks_mut(2).zip(columns.members.chunks(2)) {
            let dense = match *members {
                [a, b] => columns.rows.values(a).zip(columns.rows.values(b)),
                _ => None,
            };
            if let Some((a, b)) = dense {
                sums.copy_from_slice(&T::products(simd, [a, b], &panel.values));
                continue;
            }
            for (sums, &row) in sums.iter_mut().zip(members) {
                let mut products = [T::default(); W];
                for (feature, value) in columns.rows.row(row).entries() {
                    let (value, lanes) = (T::of(value), &panel.values[feature]);
                    for lane in 0..W {
                        products[lane] = T::multiply_add::<S>(value, lanes[lane], products[lane]);
                    }
                }
                *sums = products;
            }
        }
        if kernel.base() == Kernel::SquaredDistance {
            for (sums, &norm) in out.iter_mut().zip(columns.norms) {
                let norm = T::of(norm);
                for (sum, row_norm) in sums.iter_mut().zip(panel.norms) {
                    *sum = T::distance(row_norm, norm, *sum);
                }
            }
        }
        T::apply(kernel, precision, out.as_flattened_mut());
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::data::Dense;

    #[test]
    fn the_exponential_has_its_precision() {
        for (precision, bound) in [(Precision::Double, 1e-15), (Precision::Single, 5e-14)] {
            let exp = |x: f64| {
                let mut value = [-x];
                Kernel::Rbf { gamma: 1.0 }.apply(precision, &mut value);
                value[0]
            };
            assert_eq!(exp(0.0), 1.0);
            assert_eq!(exp(-0.0), 1.0);
            assert_eq!(exp(-1e9), 0.0);
            for step in 0..70_000 {
                let x = -f64::from(step) / 100.0;
                let error = exp(x) / x.exp() - 1.0;
                assert!(error.abs() < bound, "exp({x}) is off by {error}");
            }
        }
    }

    #[test]
    fn blocks_hold_the_kernel_of_every_pair() {
        let values = Array2::from_shape_fn((21, 3), |(i, j)| ((3 * i + j) * 7 % 11) as f64 / 4.0);
        let rows = Dense::new(values.view()).expect("contiguous");
        let order: Vec<usize> = (0..21).rev().collect();
        let norms = squared_norms(&rows, &order);
        let (gamma, coef0, degree) = (0.3, -0.5, 3);
        let plain = |kernel: Kernel, i: usize, j: usize| {
            let [x, z] = [i, j].map(|row| values.row(row));
            let (dot, distance) = (x.dot(&z), (&x - &z).mapv(|d| d * d).sum());
            match kernel {
                Kernel::Linear | Kernel::Precomputed => dot,
                Kernel::SquaredDistance => distance,
                Kernel::Rbf { .. } => (-gamma * distance).exp(),
                Kernel::Poly { .. } => (gamma * dot + coef0).powi(degree),
                Kernel::Sigmoid { .. } => (gamma * dot + coef0).tanh(),
            }
        };
        for kernel in [
            Kernel::Linear,
            Kernel::SquaredDistance,
            Kernel::Rbf { gamma },
            Kernel::Poly {
                gamma,
                coef0,
                degree,
            },
            Kernel::Sigmoid { gamma, coef0 },
        ] {
            let panel = Panel::<f64, PANEL_ROWS>::new(&rows, &order[2..7], &norms[2..7]);
            let columns = Columns {
                rows: &rows,
                members: &order,
                norms: &norms,
            };
            let mut seen = 0;
            let precise = (kernel, Precision::Double);
            kernel_block(precise, &panel, columns, |first, values| {
                for (c, lanes) in values.iter().enumerate() {
                    for lane in 0..5 {
                        let expected = plain(kernel, order[first + c], order[2 + lane]);
                        assert!((lanes[lane] - expected).abs() < 1e-12, "{kernel:?}");
                        seen += 1;
                    }
                }
            });
            assert_eq!(seen, 21 * 5);
        }
    }
}
