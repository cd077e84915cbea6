//! SIR, single instance replacement: equations 19–21 of the paper.
//!
//! Replacing x_p by x_q with α_q = α_p changes f_i by α_p(y_q K_iq − y_p K_ip), which is small where
//! x_q is similar and of the same class. So each leaving variable hands its β to the most similar
//! entering variable of its side that has none yet. Where the side has nobody left, the most
//! similar of the other side takes the same α, and the entering variables are then adjusted to the
//! right sum, as MIR does it. (The paper picks that one at random.)

use super::Move;
use super::feasible::spread;

pub(super) fn start(step: &Move<'_>) -> Vec<f64> {
    let mut beta = step.previous.beta.clone();
    let entering = step.entering();
    let (negative, positive): (Vec<usize>, Vec<usize>) =
        entering.iter().partition(|&&v| !step.after.is_positive(v));
    let mut vacant = [negative, positive];
    let mut owed = 0.0;
    for p in step.leaving() {
        let amount = std::mem::take(&mut beta[p]);
        if amount == 0.0 {
            continue;
        }
        owed += amount;
        let own = usize::from(amount > 0.0);
        let is_same_side = !vacant[own].is_empty();
        let side = &mut vacant[if is_same_side { own } else { 1 - own }];
        let similarities = step.dual.similarities(p, side).into_iter().enumerate();
        let nearest = similarities.max_by(|(_, a), (_, b)| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
        let Some((place, (q, _))) = nearest else {
            break;
        };
        side.swap_remove(place);
        let (lower, upper) = step.after.range(q);
        let signed = if is_same_side { amount } else { -amount };
        beta[q] = signed.clamp(lower, upper);
        owed -= beta[q];
    }
    spread(&mut beta, step.after, &entering, owed);
    beta
}
