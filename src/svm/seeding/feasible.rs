//! Back into the boxes and to the sum 0: the adjustment of the paper's MIR, for any variables.

use crate::svm::smo::{Bounds, rounding};

/// Clips β to its boxes, then moves all of it evenly until Σβ = 0.
pub(super) fn restore(beta: &mut [f64], bounds: &Bounds) {
    for (v, value) in beta.iter_mut().enumerate() {
        let (lower, upper) = bounds.range(v);
        *value = value.clamp(lower, upper);
    }
    let everyone: Vec<usize> = (0..beta.len()).filter(|&v| bounds.is_open(v)).collect();
    let excess: f64 = beta.iter().sum();
    // To mend what rounding left would move all variables off their bounds by next to nothing, and
    // each would take the solver a step to bring back.
    if excess.abs() > rounding(beta) {
        spread(beta, bounds, &everyone, -excess);
    }
}

/// Adds `amount` to the members' sum in equal parts, as far as their boxes allow; returns the rest.
pub(super) fn spread(beta: &mut [f64], bounds: &Bounds, members: &[usize], amount: f64) -> f64 {
    let room = |beta: &[f64], v: usize| {
        let (lower, upper) = bounds.range(v);
        if amount > 0.0 {
            upper - beta[v]
        } else {
            lower - beta[v]
        }
    };
    let mut movable: Vec<usize> = members.to_vec();
    // Least room first: once a part fits into one variable, it fits into all that follow.
    movable.sort_by(|&a, &b| room(beta, a).abs().total_cmp(&room(beta, b).abs()));
    let mut rest = amount;
    for (place, &v) in movable.iter().enumerate() {
        let part = rest / (movable.len() - place) as f64;
        let room = room(beta, v);
        let (lower, upper) = bounds.range(v);
        if part.abs() < room.abs() {
            beta[v] = (beta[v] + part).clamp(lower, upper);
            rest -= part;
        } else {
            beta[v] = if amount > 0.0 { upper } else { lower };
            rest -= room;
        }
    }
    rest
}

/// The member with the greatest key, the first of several.
pub(super) fn nearest<K: PartialOrd>(
    members: impl Iterator<Item = usize>,
    key: impl Fn(usize) -> K,
) -> Option<usize> {
    let keyed = members.map(|v| (key(v), v));
    let best = keyed.reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.map(|(_, v)| v)
}

/// Gives `amount` to the most similar candidates in turn, each as much as its box allows; returns
/// the rest.
pub(super) fn hand_over(
    beta: &mut [f64],
    bounds: &Bounds,
    amount: f64,
    (candidates, similarities): (&[usize], &[f32]),
) -> f64 {
    let mut rest = amount;
    let room = |beta: &[f64], v: usize| {
        let (lower, upper) = bounds.range(v);
        if amount > 0.0 {
            upper - beta[v]
        } else {
            lower - beta[v]
        }
    };
    while rest != 0.0 {
        let able = candidates.iter().copied();
        let able = able.filter(|&v| room(beta, v) != 0.0);
        let Some(v) = nearest(able, |v| similarities[v]) else {
            break;
        };
        let (lower, upper) = bounds.range(v);
        let space = room(beta, v);
        if rest.abs() < space.abs() {
            beta[v] = (beta[v] + rest).clamp(lower, upper);
            rest = 0.0;
        } else {
            beta[v] = if amount > 0.0 { upper } else { lower };
            rest -= space;
        }
    }
    rest
}
