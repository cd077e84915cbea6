//! Feasibility: boxes, and the sum of every group. The adjustment of the paper's MIR, for any variables.

use crate::svm::dual::{Bounds, rounding_error};

/// Clips β to its boxes, then changes it evenly until each group has its sum: free variables, if that is
/// not enough all that are not 0, and at last all. Every variable that becomes a support vector costs a kernel row.
pub(super) fn make_feasible(beta: &mut [f64], bounds: &Bounds) {
    for (v, value) in beta.iter_mut().enumerate() {
        let (lower, upper) = bounds.range(v);
        *value = value.clamp(lower, upper);
    }
    let is_free = |v: usize, b: f64| b != 0.0 && bounds.lower[v] < b && b < bounds.upper[v];
    let choices: [&dyn Fn(usize, f64) -> bool; 3] = [&is_free, &|_, b| b != 0.0, &|_, _| true];
    for group in &bounds.groups {
        for is_member in choices {
            let excess = group.excess(beta);
            // Correcting a rounding error would move all variables off their bounds by a tiny amount,
            // at one solver step each.
            if excess.abs() <= rounding_error(beta) {
                break;
            }
            let members = group.variables.clone();
            let members = members.filter(|&v| bounds.is_open(v) && is_member(v, beta[v]));
            let members: Vec<usize> = members.collect();
            distribute_evenly(beta, bounds, &members, -excess);
        }
    }
}

/// Adds `amount` to the members' sum in equal parts, as far as their boxes allow.
pub(super) fn distribute_evenly(beta: &mut [f64], bounds: &Bounds, members: &[usize], amount: f64) {
    let mut members: Vec<usize> = members.to_vec();
    let magnitude = |beta: &[f64], v| slack(beta, bounds, v, amount > 0.0).abs();
    // Least slack first: a part that fits one variable fits all that follow.
    members.sort_by(|&a, &b| magnitude(beta, a).total_cmp(&magnitude(beta, b)));
    let mut rest = amount;
    for (at, &v) in members.iter().enumerate() {
        let part = rest / (members.len() - at) as f64;
        rest -= add(beta, bounds, v, part, amount > 0.0);
    }
}

/// Adds `amount` to the most similar members in turn, to each as much as its box allows; returns the
/// rest.
pub(super) fn transfer(
    beta: &mut [f64],
    bounds: &Bounds,
    amount: f64,
    (members, similarities): (&[usize], &[f32]),
) -> f64 {
    let mut rest = amount;
    while rest != 0.0 {
        let able = members.iter().copied();
        let able = able.filter(|&v| slack(beta, bounds, v, amount > 0.0) != 0.0);
        let Some(v) = argmax(able, |v| similarities[v]) else {
            break;
        };
        rest -= add(beta, bounds, v, rest, amount > 0.0);
    }
    rest
}

/// The signed distance of β_v to its upper or lower bound.
fn slack(beta: &[f64], bounds: &Bounds, v: usize, upwards: bool) -> f64 {
    let (lower, upper) = bounds.range(v);
    (if upwards { upper } else { lower }) - beta[v]
}

/// Adds `part` to β_v, or as much as its box allows; returns the change.
fn add(beta: &mut [f64], bounds: &Bounds, v: usize, part: f64, upwards: bool) -> f64 {
    let (lower, upper) = bounds.range(v);
    let slack = slack(beta, bounds, v, upwards);
    if part.abs() < slack.abs() {
        beta[v] = (beta[v] + part).clamp(lower, upper);
        part
    } else {
        beta[v] = if upwards { upper } else { lower };
        slack
    }
}

/// The member with the greatest key, the first of equal ones.
pub(super) fn argmax<K: PartialOrd>(
    members: impl Iterator<Item = usize>,
    key: impl Fn(usize) -> K,
) -> Option<usize> {
    let keyed = members.map(|v| (key(v), v));
    let best = keyed.reduce(|best, other| if other.0 > best.0 { other } else { best });
    best.map(|(_, v)| v)
}
