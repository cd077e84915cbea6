//! What trees predict: classes, or integers.

use super::super::split::Samples;

/// Labels of rows, and how the sums of a node are made of them.
pub(in super::super) trait Target {
    /// What is known of a row.
    type Label: Copy + Send + Sync;

    /// Whether the sums of a node are those of its classes.
    const HAS_CLASSES: bool;

    /// The sum that a sample belongs to, of a target that has classes.
    fn class(label: Self::Label) -> usize;

    /// 32 bits from which [`decode`](Self::decode) knows the label and the weight of a row.
    fn encode(samples: &Samples<'_, Self::Label>, row: u32, weight: u32) -> u32;

    /// The label and the weight of a row.
    fn decode(samples: &Samples<'_, Self::Label>, code: u32) -> (Self::Label, i64);

    /// Adds a sample to the sums of a node.
    fn add(sums: &mut [i64], label: Self::Label, weight: i64);

    /// What a leaf predicts.
    fn predict(sums: &[i64], weight: f64, outputs: &mut Vec<f64>);
}

/// Codes of classes. The sums of a node are the weights of its classes, its outputs their shares.
pub(in super::super) struct Classes;

impl Target for Classes {
    type Label = u8;

    const HAS_CLASSES: bool = true;

    #[inline(always)]
    fn class(class: u8) -> usize {
        class.into()
    }

    /// Weights have the upper 24 bits, classes the lower eight.
    fn encode(samples: &Samples<'_, u8>, row: u32, weight: u32) -> u32 {
        weight << 8 | u32::from(samples.labels[row as usize])
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower eight bits
    fn decode(_: &Samples<'_, u8>, code: u32) -> (u8, i64) {
        (code as u8, (code >> 8).into())
    }

    #[inline(always)]
    fn add(sums: &mut [i64], class: u8, weight: i64) {
        sums[usize::from(class)] += weight;
    }

    fn predict(sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
        outputs.extend(sums.iter().map(|&sum| sum as f64 / weight));
    }
}

/// Integers. The sums of a node are Σ wy and Σ wy², its output is their mean.
pub(in super::super) struct Integers;

impl Target for Integers {
    type Label = i32;

    const HAS_CLASSES: bool = false;

    fn class(_: i32) -> usize {
        0
    }

    fn encode(_: &Samples<'_, i32>, row: u32, _: u32) -> u32 {
        row
    }

    #[inline(always)]
    fn decode(samples: &Samples<'_, i32>, code: u32) -> (i32, i64) {
        let row = code as usize;
        let weight = samples.weights.get(row).copied().unwrap_or(1);
        (samples.labels[row], weight.into())
    }

    #[inline(always)]
    fn add(sums: &mut [i64], target: i32, weight: i64) {
        let product = weight * i64::from(target);
        sums[0] += product;
        sums[1] += product * i64::from(target);
    }

    fn predict(sums: &[i64], weight: f64, outputs: &mut Vec<f64>) {
        outputs.push(sums[0] as f64 / weight);
    }
}
