//! The columns that the model of a fold sees, as a linear map of columns that all folds share.
//!
//! # Problem
//! A scaler in front of a model is fitted to the training rows of every fold, so that every fold has
//! columns of its own. Engines of linear models read the rows once, as common rows u = (x, 1).
//!
//! # Method
//! The row of a fold is z = Bu. With the parameters φ of a fold, a gradient g by the parameters θ of
//! common rows, and second moments S = Σ w·uuᵀ, an engine needs four things of B:
//!
//! | of | |
//! |---|---|
//! | rows | z = Bu |
//! | parameters | θ = Bᵀφ, and φ from θ |
//! | gradients | Bg |
//! | second moments | BSBᵀ |
//!
//! Nothing outside this file knows what B is. It shifts and scales the columns, or sums of them (values
//! in the place of missing ones, a selection, a rotation: `combination`), and may end with a constant:
//! z = ((Lx − shift)∘scale, v).

use std::borrow::Cow;

use ndarray::{Array2, ArrayView1};

use super::combination::Combination;
use super::{TrainingSet, set_index};
use crate::data::{Layout, Row};
use crate::linalg::{Mat, MatRef};
use crate::{Error, Result};

/// The map of the columns of one fold: x becomes (x − shift)·scale, or sums of common columns do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoldMap {
    /// Columns of the fold.
    n_features: usize,
    /// L, where these are not the common columns themselves.
    combination: Option<Combination>,
    shift: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
    /// The value of one more column, which is constant.
    constant: Option<f64>,
}

impl FoldMap {
    /// The columns as they are.
    pub(crate) fn identity(n_features: usize) -> Self {
        Self {
            n_features,
            ..Self::default()
        }
    }

    /// x − shift.
    pub(crate) fn shifted(shift: Vec<f64>) -> Self {
        Self {
            n_features: shift.len(),
            shift: Some(shift),
            ..Self::default()
        }
    }

    /// (x − shift)·scale.
    pub(crate) fn affine(shift: Vec<f64>, scale: Vec<f64>) -> Self {
        Self {
            scale: Some(scale),
            ..Self::shifted(shift)
        }
    }

    /// The same map with another shift.
    pub(crate) fn with_shift(self, shift: Vec<f64>) -> Self {
        Self {
            shift: Some(shift),
            ..self
        }
    }

    /// The same map with another scale of all columns.
    pub(crate) fn with_scale(self, scale: Vec<f64>) -> Self {
        Self {
            scale: Some(scale),
            ..self
        }
    }

    /// The same map with one more column of this value.
    pub(crate) fn with_constant(self, constant: Option<f64>) -> Self {
        Self { constant, ..self }
    }

    /// The same map of sums of common columns, those of another map, in the place of columns.
    pub(crate) fn of_sums_of(self, other: &Self) -> Self {
        Self {
            combination: other.combination.clone(),
            ..self
        }
    }

    /// This map of x as a map of rows that `common` has mapped already.
    pub(crate) fn after(&self, common: &Self) -> Self {
        if let Some(combination) = &self.combination {
            let origin = combination.apply(&common.shifts());
            let shift = (0..self.n_features).map(|j| self.shift(j) - origin[j]);
            return Self {
                shift: Some(shift.collect()),
                combination: Some(combination.in_units(|i| common.scale(i).recip())),
                ..self.clone()
            };
        }
        let features = || 0..self.n_features;
        let shift = |j| (self.shift(j) - common.shift(j)) * common.scale(j);
        let is_shifted = self.shift.is_some() || common.shift.is_some();
        let is_scaled = self.scale.is_some() || common.scale.is_some();
        let scale = || {
            features()
                .map(|j| self.scale(j) / common.scale(j))
                .collect()
        };
        Self {
            n_features: self.n_features,
            shift: is_shifted.then(|| features().map(shift).collect()),
            scale: is_scaled.then(scale),
            constant: self.constant,
            combination: None,
        }
    }

    /// The number of columns of the fold.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The number of columns of the rows that are mapped.
    pub(crate) fn n_common(&self) -> usize {
        let combination = self.combination.as_ref();
        combination.map_or(self.n_features, Combination::n_common)
    }

    /// Whether columns of the fold are sums of common ones.
    pub(crate) fn has_sums(&self) -> bool {
        self.combination.is_some()
    }

    /// The columns that are shifted and scaled, from common ones: Lx.
    pub(crate) fn sums(&self, common: Vec<f64>) -> Vec<f64> {
        match &self.combination {
            None => common,
            Some(combination) => combination.apply(&common),
        }
    }

    /// Coefficients of common columns from those of [`FoldMap::sums`], column by column; what is below
    /// these stays.
    pub(crate) fn coefficients_of_common(&self, of_sums: Mat<f64>) -> Mat<f64> {
        match &self.combination {
            None => of_sums,
            Some(combination) => combination.transposed_columns(&of_sums),
        }
    }

    /// Second moments of [`FoldMap::sums`] and others, from those of common columns and these.
    pub(crate) fn moments_of_sums<'m>(&self, common: &'m Mat<f64>) -> Cow<'m, Mat<f64>> {
        match &self.combination {
            None => Cow::Borrowed(common),
            Some(combination) => Cow::Owned(combination.second_moments(common.as_ref())),
        }
    }

    /// Whether there is a shift; without one, zeros stay zeros.
    pub fn has_shift(&self) -> bool {
        self.shift.is_some()
    }

    /// The shift of a feature.
    #[inline(always)]
    pub fn shift(&self, feature: usize) -> f64 {
        self.shift.as_ref().map_or(0.0, |shift| shift[feature])
    }

    /// The shifts of all features.
    pub(crate) fn shifts(&self) -> Vec<f64> {
        (0..self.n_features).map(|j| self.shift(j)).collect()
    }

    /// The scales of all features.
    pub(crate) fn scales(&self) -> Vec<f64> {
        (0..self.n_features).map(|j| self.scale(j)).collect()
    }

    /// The scale of a feature.
    #[inline(always)]
    pub fn scale(&self, feature: usize) -> f64 {
        self.scale.as_ref().map_or(1.0, |scale| scale[feature])
    }

    /// The value of a feature behind the map.
    #[inline(always)]
    pub fn apply(&self, feature: usize, value: f64) -> f64 {
        (value - self.shift(feature)) * self.scale(feature)
    }

    /// Whether some scale is not 1.
    pub(crate) fn has_scale(&self) -> bool {
        self.scale.iter().flatten().any(|&scale| scale != 1.0)
    }

    /// Whether rows stay as they are.
    pub(crate) fn is_identity(&self) -> bool {
        !self.has_sums()
            && !self.has_scale()
            && self.shift.iter().flatten().all(|&shift| shift == 0.0)
    }

    fn values(&self) -> impl Iterator<Item = &f64> {
        let factors = self.combination.iter().flat_map(Combination::values);
        self.shift
            .iter()
            .chain(&self.scale)
            .flatten()
            .chain(factors)
    }

    /// Whether the map is finite and can be inverted.
    pub fn is_regular(&self) -> bool {
        let mut scales = self.scale.iter().flatten();
        self.values().all(|value| value.is_finite()) && scales.all(|&scale| scale != 0.0)
    }

    /// Writes a row behind the map.
    #[inline(always)]
    pub(crate) fn write(&self, rows: &impl Layout, row: usize, out: &mut [f64]) {
        if let Some(combination) = &self.combination {
            combination.write(rows.row(row), out);
        } else if let Some(values) = rows.values(row) {
            if let (Some(shift), None) = (&self.shift, &self.scale) {
                for ((out, value), shift) in out.iter_mut().zip(values).zip(shift) {
                    *out = value - shift;
                }
                return;
            }
            out.copy_from_slice(values);
        } else {
            out.fill(0.0);
            for (feature, value) in rows.row(row).entries() {
                out[feature] = value;
            }
        }
        self.map_from(0, out);
    }

    /// Writes the features from `first` on behind the map, as many as `out` holds.
    #[inline(always)]
    pub(crate) fn write_from<T: Row>(&self, first: usize, row: T, out: &mut [f64]) {
        if row.n_stored() == self.n_features {
            let values = row.entries().skip(first);
            for (out, (_, value)) in out.iter_mut().zip(values) {
                *out = value;
            }
        } else {
            out.fill(0.0);
            let features = first..first + out.len();
            for (j, value) in row.entries().filter(|entry| features.contains(&entry.0)) {
                out[j - first] = value;
            }
        }
        self.map_from(first, out);
    }

    /// Maps the values of features from `first` on in place.
    #[inline(always)]
    pub(crate) fn map_from(&self, first: usize, values: &mut [f64]) {
        if let Some(shift) = &self.shift {
            for (value, shift) in values.iter_mut().zip(&shift[first..]) {
                *value -= shift;
            }
        }
        if let Some(scale) = &self.scale {
            for (value, scale) in values.iter_mut().zip(&scale[first..]) {
                *value *= scale;
            }
        }
    }

    /// The number of parameters φ.
    pub(crate) fn n_params(&self) -> usize {
        self.n_features + usize::from(self.constant.is_some())
    }

    /// The value of the constant; 0 if there is none.
    pub(crate) fn intercept_value(&self) -> f64 {
        self.constant.unwrap_or(0.0)
    }

    /// What the constant adds to the predictions of φ: the intercept.
    pub(crate) fn intercept(&self, fold_params: &[f64]) -> f64 {
        let param = fold_params.get(self.n_features);
        self.constant
            .zip(param)
            .map_or(0.0, |(value, param)| value * param)
    }

    /// θ of φ.
    pub(crate) fn to_common(&self, fold_params: &[f64]) -> Vec<f64> {
        let scaled = fold_params.iter().take(self.n_features).enumerate();
        let mut common: Vec<f64> = scaled.map(|(j, param)| self.scale(j) * param).collect();
        let shifted: f64 = self.at_shift(&common);
        if let Some(combination) = &self.combination {
            common = combination.transposed(&common);
        }
        common.push(self.intercept(fold_params) - shifted);
        common
    }

    /// φ of θ, or the nearest where columns are sums; without a constant, the last of θ is not taken
    /// over.
    pub(crate) fn to_fold(&self, common_params: &[f64]) -> Vec<f64> {
        let (p, m) = (self.n_features, self.n_common());
        let sums = self.combination.as_ref();
        let of_sums = sums.map(|combination| combination.nearest(&common_params[..m]));
        let of_sums = of_sums.as_deref().unwrap_or(&common_params[..m]);
        let mut fold: Vec<f64> = (0..p).map(|j| of_sums[j] / self.scale(j)).collect();
        if let Some(value) = self.constant {
            fold.push((common_params[m] + self.at_shift(of_sums)) / value);
        }
        fold
    }

    /// ⟨θ, shift⟩.
    fn at_shift(&self, common_params: &[f64]) -> f64 {
        let terms = common_params.iter().zip(self.shift.iter().flatten());
        terms.map(|(param, shift)| param * shift).sum()
    }

    /// Sets parameters to 0 that no common column has a part in: a fold lacks these columns, and what
    /// folds share, such as a preconditioner, may know them. There may be several predictors.
    pub(crate) fn clear_unused(&self, fold_params: &mut [f64]) {
        let Some(combination) = &self.combination else {
            return;
        };
        let is_used = combination.are_used();
        for params in fold_params.chunks_exact_mut(self.n_params()) {
            for (param, is_used) in params.iter_mut().zip(&is_used) {
                if !is_used {
                    *param = 0.0;
                }
            }
        }
    }

    /// Bg.
    pub(crate) fn gradient(&self, common: &[f64]) -> Vec<f64> {
        let (p, last) = (self.n_features, common[self.n_common()]);
        let of_sums = self.combination.as_ref().map(|own| own.apply(common));
        let of_sums = of_sums.as_deref().unwrap_or(common);
        let features = (0..p).map(|j| self.scale(j) * (of_sums[j] - self.shift(j) * last));
        let constant = self.constant.map(|value| value * last);
        features.chain(constant).collect()
    }

    /// The magnitude of a column of the row of a fold, from that of the common row; 0 of the constant
    /// if there is none.
    #[inline(always)]
    pub(crate) fn size(&self, column: usize, value: f64) -> f64 {
        if column < self.n_features {
            self.apply(column, value).abs()
        } else {
            self.constant.map_or(0.0, |own| (own * value).abs())
        }
    }

    /// Magnitudes of the terms of Bg, from those of the terms of g.
    pub(crate) fn magnitude(&self, common: &[f64]) -> Vec<f64> {
        let (p, last) = (self.n_features, common[self.n_common()]);
        let of_sums = self.combination.as_ref().map(|own| own.apply_sizes(common));
        let of_sums = of_sums.as_deref().unwrap_or(common);
        let size = |j| self.scale(j).abs() * (of_sums[j] + self.shift(j).abs() * last);
        let constant = self.constant.map(|value| value.abs() * last);
        (0..p).map(size).chain(constant).collect()
    }

    /// The diagonal of BSBᵀ, from Σ w·u and Σ w·u². Of columns that are sums, as if no row had two of
    /// the terms.
    pub(crate) fn squares(&self, sums: &[f64], squares: &[f64]) -> Vec<f64> {
        let (p, weight) = (self.n_features, sums[self.n_common()]);
        let of_sums = self
            .combination
            .as_ref()
            .map(|own| (own.apply(sums), own.apply_squares(squares)));
        let (sums, squares) = of_sums
            .as_ref()
            .map_or((sums, squares), |(a, b)| (&a[..], &b[..]));
        let square = |j: usize| {
            let shift = self.shift(j);
            let centred = squares[j] - 2.0 * shift * sums[j] + shift * shift * weight;
            self.scale(j).powi(2) * centred
        };
        let constant = self.constant.map(|value| value.powi(2) * weight);
        (0..p).map(square).chain(constant).collect()
    }

    /// BSBᵀ; lower triangles.
    pub(crate) fn second_moments(&self, common: MatRef<'_, f64>) -> Mat<f64> {
        let of_sums = self
            .combination
            .as_ref()
            .map(|own| own.second_moments(common));
        let common = of_sums.as_ref().map_or(common, Mat::as_ref);
        let (p, n) = (self.n_features, self.n_params());
        let value = self.constant.unwrap_or(0.0);
        let (sums, weight) = (|j| common[(p, j)], common[(p, p)]);
        Mat::from_fn(n, n, |i, j| {
            if i < j {
                0.0
            } else if j == p {
                value * value * weight
            } else if i == p {
                value * self.scale(j) * (sums(j) - weight * self.shift(j))
            } else {
                self.about_shift(common, p, i, j) * self.scale(i) * self.scale(j)
            }
        })
    }

    /// Σ w·(uᵢ − shift)(uⱼ − shift), from second moments with the constant of common rows at `constant`.
    #[inline(always)]
    pub(crate) fn about_shift(
        &self,
        common: MatRef<'_, f64>,
        constant: usize,
        i: usize,
        j: usize,
    ) -> f64 {
        let (shift_i, shift_j) = (self.shift(i), self.shift(j));
        let sum = |j| common[(constant, j)];
        let weight = common[(constant, constant)];
        common[(i.max(j), i.min(j))] - shift_i * sum(j) - shift_j * sum(i)
            + weight * shift_i * shift_j
    }
}

/// The maps of all training sets: that of all rows, then that of each fold; or one for all.
#[derive(Clone, Debug)]
pub struct FoldMaps {
    maps: Vec<FoldMap>,
}

impl PartialEq for FoldMaps {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.maps == other.maps
    }
}

impl FoldMaps {
    /// Shift and scale of the columns: one row per training set, of as many columns as there are
    /// features, that of all samples first. Without a shift, zeros stay zeros.
    pub fn new(shift: Option<Array2<f64>>, scale: Array2<f64>) -> Result<Self> {
        if let Some(shift) = &shift
            && shift.dim() != scale.dim()
        {
            return Err(Error::Shape {
                what: "shift",
                expected: scale.len(),
                found: shift.len(),
            });
        }
        let map = |(set, scale): (usize, ArrayView1<'_, f64>)| FoldMap {
            n_features: scale.len(),
            shift: shift.as_ref().map(|shift| shift.row(set).to_vec()),
            scale: Some(scale.to_vec()),
            ..FoldMap::default()
        };
        let maps = scale.outer_iter().enumerate().map(map).collect();
        Ok(Self { maps })
    }

    /// Columns that are sums of common columns, less a shift: one row of shifts, and one of the values
    /// of the entries of L, per training set. The entries are those of one common column after the
    /// other, which begin at `starts`; each adds to the column of the fold in `columns`.
    pub fn of_sums(
        shift: &Array2<f64>,
        starts: Vec<usize>,
        columns: Vec<usize>,
        values: &Array2<f64>,
    ) -> Result<Self> {
        if shift.nrows() != values.nrows() {
            return Err(Error::Shape {
                what: "lines of the map",
                expected: shift.nrows(),
                found: values.nrows(),
            });
        }
        let of_folds = Combination::of_folds(shift.ncols(), starts, columns, values.outer_iter())?;
        let maps = shift.outer_iter().zip(of_folds);
        let map = |(shift, combination): (ArrayView1<'_, f64>, _)| FoldMap {
            combination: Some(combination),
            ..FoldMap::shifted(shift.to_vec())
        };
        Ok(Self {
            maps: maps.map(map).collect(),
        })
    }

    /// These maps, or none, as maps of common rows, with one more column of this value.
    pub(crate) fn of_common(maps: Option<&Self>, common: &FoldMap, constant: Option<f64>) -> Self {
        let identity = [FoldMap::identity(common.n_features)];
        let maps = maps.map_or(&identity[..], |maps| &maps.maps);
        let of_common = |map: &FoldMap| map.after(common).with_constant(constant);
        Self {
            maps: maps.iter().map(of_common).collect(),
        }
    }

    /// [`Error::Shape`] unless there is a map of `n_features` features for each of `n_folds` folds.
    pub(crate) fn check(&self, n_folds: usize, n_features: usize) -> Result<()> {
        let n_columns = self.maps.first().map_or(0, FoldMap::n_common);
        for (what, expected, found) in [
            (
                "folds of the scaling",
                n_folds,
                self.maps.len().saturating_sub(1),
            ),
            ("features of the scaling", n_features, n_columns),
        ] {
            if expected != found {
                return Err(Error::Shape {
                    what,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }

    /// An [`Error::Parameter`] unless all values are finite.
    pub(crate) fn check_finite(&self) -> Result<()> {
        let mut values = self.maps.iter().flat_map(FoldMap::values);
        match values.find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => Err(Error::parameter("scaling", "finite", value)),
        }
    }

    /// Whether there is a shift.
    pub fn has_shift(&self) -> bool {
        self.maps.iter().any(FoldMap::has_shift)
    }

    /// Whether some scale is not 1.
    pub fn has_scale(&self) -> bool {
        self.maps.iter().any(FoldMap::has_scale)
    }

    /// Whether columns of folds are sums of common ones.
    pub(crate) fn has_sums(&self) -> bool {
        self.maps.iter().any(FoldMap::has_sums)
    }

    /// The map of all rows.
    ///
    /// # Panics
    /// When there is none.
    pub fn all_rows(&self) -> &FoldMap {
        &self.maps[0]
    }

    /// The map of a fold.
    ///
    /// # Panics
    /// When there is no such fold.
    pub fn fold(&self, fold: usize) -> &FoldMap {
        self.of_set(Some(fold))
    }

    /// The map of a training set.
    pub(crate) fn of_set(&self, set: TrainingSet) -> &FoldMap {
        if let [only] = &self.maps[..] {
            return only;
        }
        &self.maps[set_index(set)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::product;

    const CENTRE: [f64; 2] = [1.0, -2.0];

    /// Maps of rows about a centre, with and without a shift, a scale and a constant.
    fn maps() -> Vec<FoldMap> {
        let scaled = FoldMap::identity(2).with_scale(vec![2.0, 0.25]);
        let affine = FoldMap::affine(vec![0.5, 3.0], vec![2.0, 0.25]);
        let kinds = [FoldMap::identity(2), scaled, affine];
        let common = FoldMap::shifted(CENTRE.to_vec());
        let constants = [None, Some(1.0), Some(3.0)];
        kinds
            .iter()
            .flat_map(|map| constants.map(|value| map.after(&common).with_constant(value)))
            .collect()
    }

    /// Bᵀ, column by column.
    fn matrix(map: &FoldMap) -> Mat<f64> {
        let n = map.n_params();
        let mut matrix = Mat::zeros(3, n);
        for j in 0..n {
            let unit: Vec<f64> = (0..n).map(|i| f64::from(i == j)).collect();
            let common = map.to_common(&unit);
            (0..3).for_each(|i| matrix[(i, j)] = common[i]);
        }
        matrix
    }

    #[test]
    fn parameters_of_a_fold_and_common_ones_are_one_function() {
        let x = [0.7, 1.9];
        let [r, s] = [[2.0, 0.25], [0.5, 3.0]];
        let map = &maps()[7];
        let params = [0.3, -1.1, 0.8];
        let common = map.to_common(&params);
        let scaled: f64 = (0..2).map(|j| params[j] * (x[j] - s[j]) * r[j]).sum();
        let centred: f64 = (0..2).map(|j| common[j] * (x[j] - CENTRE[j])).sum();
        assert!((scaled + params[2] - centred - common[2]).abs() < 1e-14);
    }

    #[test]
    fn rows_are_those_of_the_composed_map() {
        let x = [0.7, 1.9];
        let common = FoldMap::affine(CENTRE.to_vec(), vec![4.0, 0.5]);
        let map = FoldMap::affine(vec![0.5, 3.0], vec![2.0, 0.25]);
        let mut row = x;
        common.map_from(0, &mut row);
        map.after(&common).map_from(0, &mut row);
        for j in 0..2 {
            assert!((row[j] - map.apply(j, x[j])).abs() < 1e-14);
        }
    }

    #[test]
    fn maps_are_inverse_and_sums_are_those_of_mapped_rows() {
        let moments = Mat::from_fn(3, 3, |i, j| 1.0 / (1.0 + (i + j) as f64));
        let gradient = [0.4, -0.2, 1.5];
        for map in maps() {
            let n = map.n_params();
            let params: Vec<f64> = (0..n).map(|j| 0.5 + j as f64).collect();
            let common = map.to_common(&params);
            for (inverse, param) in map.to_fold(&common).iter().zip(&params) {
                assert!((inverse - param).abs() < 1e-14);
            }
            let b = matrix(&map);
            let column = Mat::from_fn(3, 1, |i, _| gradient[i]);
            let expected = product(b.transpose(), column.as_ref());
            for (j, value) in map.gradient(&gradient).iter().enumerate() {
                assert!((value - expected[(j, 0)]).abs() < 1e-14);
            }
            let half = product(moments.as_ref(), b.as_ref());
            let expected = product(b.transpose(), half.as_ref());
            let mapped = map.second_moments(moments.as_ref());
            let sums: Vec<f64> = (0..3).map(|j| moments[(2, j)]).collect();
            let diagonal: Vec<f64> = (0..3).map(|j| moments[(j, j)]).collect();
            let squares = map.squares(&sums, &diagonal);
            for j in 0..n {
                assert!((squares[j] - expected[(j, j)]).abs() < 1e-13);
                for i in j..n {
                    assert!((mapped[(i, j)] - expected[(i, j)]).abs() < 1e-13);
                }
            }
        }
    }
}
